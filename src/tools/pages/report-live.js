(function(){var key='paracord '+location.pathname,open=function(){return document.querySelectorAll('details')},s=document.getElementById('threshold');
try{var was=JSON.parse(sessionStorage.getItem(key)||'null');sessionStorage.removeItem(key);
if(was){open().forEach(function(x,i){if(was.open[i]!==undefined)x.open=was.open[i]});if(s){if(was.at){s.value=was.at;window.pcShow()}}window.scrollTo(0,was.y)}}catch(e){}
function busy(){return document.hidden||document.querySelector('.at:hover,.shot:hover,input:active,:focus-visible')||String(getSelection())}
function look(){if(Date.now()>last){document.getElementById('live').textContent='No news for long: the run may have been stopped. Reload the page to look again.';return}
if(busy())return void setTimeout(look,1000);
try{sessionStorage.setItem(key,JSON.stringify({y:scrollY,at:s?s.value:0,open:Array.from(open(),function(x){return x.open})}))}catch(e){}
location.reload()}
setTimeout(look,wait*1000)})();
