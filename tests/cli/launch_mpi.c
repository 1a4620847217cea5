/* launch_mpi.c: programs of Open MPI under paracord launch are one world, also when they are started again. */
#include "launch.h"

static const char program[] =
    "#include <mpi.h>\\n#include <stdio.h>\\n#include <stdlib.h>\\nint main(int c, char **v) { int r, n, s; "
    "MPI_Init(&c, &v); "
    "MPI_Comm_rank(MPI_COMM_WORLD, &r); MPI_Comm_size(MPI_COMM_WORLD, &n); "
    "MPI_Allreduce(&r, &s, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); printf(\"%%d of %%d, sum %%d\\\\n\", r, n, s); "
    "fflush(stdout); "
    "int start = atoi(getenv(\"TORCHELASTIC_RESTART_COUNT\")); MPI_Barrier(MPI_COMM_WORLD); "
    "if (c > 1 && r == 1 && start < atoi(v[1])) MPI_Abort(MPI_COMM_WORLD, 7); MPI_Barrier(MPI_COMM_WORLD); "
    "MPI_Finalize(); return 0; }";

static bool can_run(void)
{
    char line[2048];
    snprintf(line, sizeof line,
             "exec 2>&1; printf '%s' >p.c && mpicc p.c -o p && mpirun --version | grep -q 'Open MPI'", program);
    if (shell(output, line) == 0 && shell(output, "$P launch -n 2 -- printenv PMIX_RANK") == 0)
        return true;
    print_message("no Open MPI and libpmix here: %s\n", output);
    return false;
}

static void mpi_has_one_world(void **state)
{
    (void)state;
    if (!can_run())
        skip();
    assert_status("timeout 60 $P launch -n 4 -- ./p 2>&1 | sort", 0);
    assert_string_equal(output, "[0] 0 of 4, sum 6\n[1] 1 of 4, sum 6\n[2] 2 of 4, sum 6\n[3] 3 of 4, sum 6\n");
    assert_status("timeout 60 $P launch -n 2 --max-restarts 1 -- ./p 1 2>&1", 0);
    assert_has("ended with exit status 7");
    assert_has("restart 1 of 1");
    assert_has("[1] 1 of 2, sum 1\n");
    assert_status("timeout 60 $P launch -n 4 --elastic -- ./p 2 2>&1", 0);
    assert_has("going on with 2 of 3 ranks");
    assert_has("[0] 0 of 3, sum 3\n");
    assert_has("[1] 1 of 2, sum 1\n");
    /* No shared memory is left: of ranks that were killed, and, by the next job, of a launcher that was.
     * That may be a job of another test: the folder is looked at before the launcher is killed. */
    assert_status("timeout 60 $P launch -n 2 -- ./p 9 2>&1", 7);
    assert_status(
        "$P launch -n 1 -- sh -c 'echo $OMPI_MCA_btl_vader_backing_directory >segments; exec ./p'; test -s segments && "
        "! test -e $(cat segments)",
        0);
    assert_status(
        "$P launch -n 2 -- sh -c 'echo $OMPI_MCA_btl_vader_backing_directory >segments; ./p; echo done >ran; "
        "sleep 60' >/dev/null & "
        "for i in $(seq 1000); do test -e ran && break; sleep 0.01; done; ls -d $(dirname $(cat segments)) && "
        "kill -KILL $!; wait; $P launch -n 1 -- true; "
        "for i in $(seq 1000); do test -e $(dirname $(cat segments)) || break; sleep 0.01; done; "
        "! test -e $(dirname $(cat segments)) && rm segments ran",
        0);
    assert_has("paracord-job-");
}

static int prepare(void **state)
{
    static char folder[] = "/tmp/paracord-mpi-XXXXXX";
    *state = folder;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int tidy(void **state)
{
    (void)shell(output, "rm -f p.c p");
    return chdir("/") == 0 ? rmdir(*state) : -1;
}

int main(int argc, char **argv)
{
    int status;
    if (is_rank(argc, argv, &status))
        return status;
    const struct CMUnitTest tests[] = {cmocka_unit_test(mpi_has_one_world)};
    return cmocka_run_group_tests(tests, prepare, tidy);
}
