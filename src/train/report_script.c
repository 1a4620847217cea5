/* report_script.c: what a report does where scripts run: a running one looks for its next version, and the threshold
 * can be moved. Both work without: by the browser's refresh, and by the table. No < in it, nor &: it stands in markup.
 */
#include "train/report_parts.h"

/* clang-format off */
static const char slider[] =
    "(function(){var d=JSON.parse(document.getElementById('answers').getAttribute('value')),"
    "s=document.getElementById('threshold'),p=document.getElementById('pick'),o=document.getElementById('chosen');\n"
    "function share(a,b){return b>0?(100*a/b).toFixed(1)+'\\u202f%':'\\u2013'}\n"
    "function show(){var t=+s.value,a=d[2+2*t],h=d[3+2*t],n=d[0],m=d[1],c=p.cells,f=(t/100).toFixed(2);\n"
    "o.textContent=f;c[0].textContent=f;c[1].textContent=share(h+n-a,n+m);c[2].textContent=share(n-a,n);"
    "c[3].textContent=share(h,m);c[4].textContent=share(h,a+h)}\n"
    "p.hidden=false;s.parentNode.hidden=false;s.addEventListener('input',show);window.pcShow=show;show()})();\n";

/* The next version keeps what the reader has done: where the page stands, what is open, the threshold. */
static const char again[] =
    "(function(){var key='paracord '+location.pathname,open=function(){return document.querySelectorAll('details')},"
    "s=document.getElementById('threshold');\n"
    "try{var was=JSON.parse(sessionStorage.getItem(key)||'null');sessionStorage.removeItem(key);\n"
    "if(was){open().forEach(function(x,i){if(was.open[i]!==undefined)x.open=was.open[i]});"
    "if(s){if(was.at){s.value=was.at;window.pcShow()}}window.scrollTo(0,was.y)}}catch(e){}\n"
    "function busy(){return document.hidden||document.querySelector('.at:hover,.shot:hover,input:active,:focus-visible')"
    "||String(getSelection())}\n"
    "function look(){if(Date.now()>last){document.getElementById('live').textContent="
    "'No news for long: the run may have been stopped. Reload the page to look again.';return}\n"
    "if(busy())return void setTimeout(look,1000);\n"
    "try{sessionStorage.setItem(key,JSON.stringify({y:scrollY,at:s?s.value:0,"
    "open:Array.from(open(),function(x){return x.open})}))}catch(e){}\n"
    "location.reload()}\n"
    "setTimeout(look,wait*1000)})();\n";
/* clang-format on */

enum { PATIENCE = 20, LEAST_PATIENCE = 600 }; /* times the wait; seconds */

void pc__report_script(pc__text *text, const pc__report *report)
{
    bool roc = pc__report_has_roc(report);
    if (!roc && !report->running)
        return;
    pc__html_put(text, "<script>\n");
    pc__html_put(text, roc ? slider : "");
    if (report->running) {
        int wait = PC__MAX(report->next_seconds, 1);
        pc__text_add(text, "var wait=%d,last=%lld;\n", wait,
                     (long long)(report->written + PC__MAX(PATIENCE * wait, LEAST_PATIENCE)) * 1000);
        pc__html_put(text, again);
    }
    pc__html_put(text, "</script>\n");
}
