(function(){var d=JSON.parse(document.getElementById('answers').getAttribute('value')),s=document.getElementById('threshold'),p=document.getElementById('pick'),o=document.getElementById('chosen');
function share(a,b){return b>0?(100*a/b).toFixed(1)+'\u202f%':'\u2013'}
function show(){var t=+s.value,a=d[2+2*t],h=d[3+2*t],n=d[0],m=d[1],c=p.cells,f=(t/100).toFixed(2);
o.textContent=f;c[0].textContent=f;c[1].textContent=share(h+n-a,n+m);c[2].textContent=share(n-a,n);c[3].textContent=share(h,m);c[4].textContent=share(h,a+h)}
p.hidden=false;s.parentNode.hidden=false;s.addEventListener('input',show);window.pcShow=show;show()})();
