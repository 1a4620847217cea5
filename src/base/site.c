#include "base/site.h"
#include <stdio.h>
pc__site pc__site_here(void){return 0;}
char *pc__site_text(pc__site s,char t[PC__SITE_TEXT]){(void)s;snprintf(t,PC__SITE_TEXT,"unknown place");return t;}
