/* init.c: MPI_Init_thread, without Open MPI's handlers for crashes. They print a stack trace, which asks for memory: where the
 * crash was in malloc, as one that another process has sent may be, the rank waits for its own lock for ever, and mpirun waits
 * for the rank. */
#include "mpi/engine.h"

#include <signal.h>
#include <stdlib.h>

static void die(int number)
{
    (void)raise(number); /* SA_RESETHAND: by what it does to a process that has no handler */
}

/* Open MPI leaves signals alone that have a handler when it begins. OMPI_MCA_opal_signal asks for its own. */
int pc__mpi_init(int *level)
{
    enum { CRASHES = 4 };
    static const int numbers[CRASHES] = {SIGABRT, SIGBUS, SIGFPE, SIGSEGV};
    const struct sigaction own = {.sa_handler = die, .sa_flags = SA_RESETHAND};
    struct sigaction before[CRASHES];
    bool held[CRASHES];
    for (int i = 0; i < CRASHES; i++)
        held[i] = !getenv("OMPI_MCA_opal_signal") && sigaction(numbers[i], NULL, &before[i]) == 0 &&
                  before[i].sa_handler == SIG_DFL && sigaction(numbers[i], &own, NULL) == 0;
    const int result = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, level);
    for (int i = 0; i < CRASHES; i++)
        if (held[i])
            (void)sigaction(numbers[i], &before[i], NULL);
    return result;
}
