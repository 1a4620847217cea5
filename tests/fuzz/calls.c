/* Fuzz target: what ranks write of their calls, of any bytes, beside a file of another rank, read and compared. */
#include "fuzz/fuzz.h"

#include "calls/calls.h"

static const char other[] = "{\"paracord_calls\":1,\"job\":\"1\",\"start\":0,\"rank\":1,\"size\":3,\"written\":7,\"now_"
                            "ns\":900,\"why\":\"w\",\"calls\":["
                            "{\"group\":\"world\",\"number\":1,\"op\":\"all_reduce\",\"dtype\":\"float32\",\"count\":4,"
                            "\"bytes\":16,\"reduction\":\"sum\","
                            "\"peer\":-1,\"rank\":1,\"of\":3,\"member\":1,\"device\":\"cpu\",\"entered_ns\":5,"
                            "\"finished_ns\":0,\"state\":\"running\"}]}";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    pc_calls_summary summary;
    pc_calls *calls = pc__calloc(1, sizeof *calls);
    if (!calls)
        abort();
    pc_status status = pc__calls_read(calls, "given", "calls.rank0.json", bytes, n);
    if (status == PC_OK)
        status = pc__calls_read(calls, "other", "calls.rank1.json", other, sizeof other - 1);
    if (status == PC_OK)
        pc__calls_choose(calls);
    if (status == PC_OK && pc_calls_summarise(calls, &summary) == PC_OK)
        pc_calls_summary_free(&summary);
    pc_calls_free(calls);
    pc_error_clear();
    return 0;
}
