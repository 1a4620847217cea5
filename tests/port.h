/* port.h: a port for a test to listen at. */
#ifndef PC_TEST_PORT_H
#define PC_TEST_PORT_H

#include "support.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

/* Nobody listens there. It lies below the ports that Linux gives to connections, which other tests may make before this one
 * listens, and each process looks from another place on. */
static inline int free_port(void)
{
    static int tried;
    for (;;) {
        const int port = 10000 + (getpid() * 31 + tried++) % 10000;
        const struct sockaddr_in address = {
            .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_ANY)};
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        assert_true(fd >= 0);
        const bool is_free = bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
        close(fd);
        if (is_free)
            return port;
    }
}

#endif
