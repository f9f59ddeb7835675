// SPDX-License-Identifier: Apache-2.0
/* forward.c - the smallest program that forwards between two sockets: the floor
 * for whatever has a node between two others.
 *
 *   forward ADDRESS PORT
 *
 * It listens on a port of the loopback interface that the system chooses, says
 *
 *   ready PORT
 *
 * and connects each connection that it accepts with PORT at ADDRESS. A thread for each
 * direction reads what there is and writes it on, and knows nothing of what that is.
 * What one side ends is ended on the other. It ends at the end of its standard input.
 * What it cannot do at the start it says in one sentence on standard error, and exits
 * with 1.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHUNK = 262144 };

struct way { int from, to; };

static struct sockaddr_in target;
static int listener;

static void fail(const char *what)
{
    fprintf(stderr, "forward: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void *pump(void *arg)
{
    struct way way = *(struct way *)arg;
    char *chunk = malloc(CHUNK);
    ssize_t got, put, at;

    free(arg);
    while (chunk && (got = read(way.from, chunk, CHUNK)) > 0)
        for (at = 0; at < got; at += put)
            if ((put = write(way.to, chunk + at, got - at)) < 0)
                goto end;
end:
    shutdown(way.to, SHUT_WR);
    shutdown(way.from, SHUT_RD);
    free(chunk);
    return NULL;
}

static int start(int from, int to)
{
    pthread_t thread;
    struct way *way = malloc(sizeof *way);

    if (!way)
        return -1;
    *way = (struct way){from, to};
    if (pthread_create(&thread, NULL, pump, way)) {
        free(way);
        return -1;
    }
    return pthread_detach(thread);
}

static void *accepting(void *arg)
{
    int one = 1, in, out;

    for (;;) {
        if ((in = accept(listener, NULL, NULL)) < 0)
            fail("a connection cannot be accepted");
        if ((out = socket(AF_INET, SOCK_STREAM, 0)) < 0)
            fail("no socket");
        if (connect(out, (struct sockaddr *)&target, sizeof target) < 0) {
            close(out);
            close(in);
            continue;
        }
        setsockopt(in, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (start(in, out) || start(out, in))
            fail("no thread");
    }
    return arg;
}

int main(int argc, char **argv)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof own;
    pthread_t thread;
    char ignored[256];

    target.sin_family = AF_INET;
    if (argc != 3 || inet_pton(AF_INET, argv[1], &target.sin_addr) != 1 || !(target.sin_port = htons(atoi(argv[2])))) {
        fprintf(stderr, "usage: forward ADDRESS PORT\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if ((listener = socket(AF_INET, SOCK_STREAM, 0)) < 0 || bind(listener, (struct sockaddr *)&own, sizeof own) < 0
        || listen(listener, 16) < 0 || getsockname(listener, (struct sockaddr *)&own, &length) < 0)
        fail("it cannot listen");
    if (pthread_create(&thread, NULL, accepting, NULL))
        fail("no thread");
    printf("ready %d\n", ntohs(own.sin_port));
    fflush(stdout);
    while (read(0, ignored, sizeof ignored) > 0)
        ;
    return 0;
}
