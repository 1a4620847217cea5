(function(){var d=JSON.parse(document.getElementById('answers').getAttribute('value')),s=document.getElementById('threshold'),p=document.getElementById('pick'),o=document.getElementById('chosen');
function share(a,b){var p=a/b*100;return b>0?(p*4%4==1?p-.01:p).toFixed(1)+'\u202f%':'\u2013'}
function show(){var t=+s.value,a=d[2+2*t],h=d[3+2*t],n=d[0],m=d[1],c=p.cells,f=(t/100).toFixed(2);
o.textContent=f;c[0].textContent=f;c[1].textContent=share(h+n-a,n+m);c[2].textContent=share(n-a,n);c[3].textContent=share(h,m);c[4].textContent=share(h,a+h)}
p.hidden=false;s.parentNode.hidden=false;s.addEventListener('input',show);window.pcShow=show;show()})();
