/* world.c: MPI's beginning and end, and whether its world is the one that the launcher's variables told of. */
#include "mpi/engine.h"

static bool ours; /* begun here, so to be ended here */

static pc_status begin(void)
{
    int initialized = 0, finalized = 0, level = MPI_THREAD_SINGLE;
    PC__TRY(pc__mpi_check(MPI_Finalized(&finalized), "MPI_Finalized"));
    if (finalized)
        return pc__fail(PC_ERR_STATE, "this process has called MPI_Finalize already: call it behind pc_dist_end");
    PC__TRY(pc__mpi_check(MPI_Initialized(&initialized), "MPI_Initialized"));
    if (initialized) {
        PC__TRY(pc__mpi_check(MPI_Query_thread(&level), "MPI_Query_thread"));
    } else {
        PC__TRY(pc__mpi_check(pc__mpi_init(&level), "MPI_Init_thread"));
        ours = true;
        (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        (void)MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    }
    if (level == MPI_THREAD_MULTIPLE)
        return PC_OK;
    return pc__fail(PC_ERR_UNSUPPORTED, "MPI must work for several threads: %s MPI_THREAD_MULTIPLE",
                    ours ? "install one that is built for" : "begin it by MPI_Init_thread with");
}

pc_status pc__mpi_start(int rank, int size, bool crowded)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int mpi_rank = 0, mpi_size = 0, n = 0;
    PC__TRY(begin());
    pc__mpi_crowded = crowded;
    PC__TRY(pc__mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &mpi_size), "MPI_Comm_size"));
    PC__TRY(pc__mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank), "MPI_Comm_rank"));
    if (mpi_size == size && mpi_rank == rank)
        return PC_OK;
    version[0] = 0;
    (void)MPI_Get_library_version(version, &n);
    version[strcspn(version, ",\n")] = 0;
    return pc__fail(
        PC_ERR_UNSUPPORTED,
        "this process is rank %d of %d, but rank %d of %d to MPI (%.60s): start all ranks by its own mpirun "
        "-n %d, srun --mpi=pmix or paracord launch, and leave RANK and WORLD_SIZE to them",
        rank, size, mpi_rank, mpi_size, version, size);
}

bool pc__mpi_runs(void)
{
    int finalized = 1;
    return MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized;
}

void pc__mpi_end(void)
{
    if (ours && pc__mpi_runs())
        (void)MPI_Finalize();
}
