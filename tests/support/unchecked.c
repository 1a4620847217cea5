/* unchecked.c: ends a test that comes by a kernel of a narrower SIMD level that the build with the address sanitizer
 * compiles without its checks, as no test was to call it (cmake/Paracord.cmake). The compiler calls this. */
#include <stdio.h>
#include <stdlib.h>

void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)function;
    (void)caller;
    fputs(
        "a kernel below the widest SIMD level runs without checks: its file is missing in PARACORD_NARROW_CHECKED, in "
        "cmake/Paracord.cmake\n",
        stderr);
    abort();
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function;
    (void)caller;
}
