/* Fuzz target: CSV files of any bytes, by the first one in several ways. */
#include "fuzz/fuzz.h"

#include <paracord/samples.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const int way = n ? bytes[0] : 0;
    const pc_csv_options options = {.y = way & 1 ? "1" : NULL,
                                    .classes = (way & 3) == 3,
                                    .no_header = way & 4,
                                    .separator = way & 8 ? ';' : ',',
                                    .missing = (pc_csv_missing)(way / 16 % 3)};
    PC_SCOPE {
        pc_tensor *x, *y;
        (void)!pc_csv_read(pc__fuzz_file(bytes, n), options, &x, &y);
    }
    pc_error_clear();
    return 0;
}
