// SPDX-License-Identifier: Apache-2.0
/* strangers.c - connects with a port as often as it is told to, as those do whom nobody
 * there knows.
 *
 *   strangers ADDRESS PORT RATE MS WORDS
 *
 * It connects RATE times a second for MS milliseconds. Of three one after the other the first
 * is silent, and comes from 127.0.0.1; the second, from two other addresses of the loopback, says
 * something else than anybody there understands, or goes at once; the third, from four more, says
 * WORDS, which are given in hexadecimal digits. Who does not go stays until KEPT of its kind have come
 * after it. Whoever is not let in within a second gives up. No more come while WAITING wait: where a machine is too busy
 * to let in as many, nodes would be kept out too, and nobody there could do anything about it. Of those who should
 * have come meanwhile all but EVENTS never do. At the end it says
 *
 *   came N of M
 *
 * of which N are those that were let in. It ends at the end of its standard input, too. None of its
 * ports has to wait before it is used again. What it cannot do at the start it says in one
 * sentence on standard error, and exits with 1.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Of each kind so many stay. Places to wait are taken in order and given back in order, so one that is let in keeps
 * its place until those before it have gone: there are PLACES of them, though no more than WAITING wait at once. */
enum { KINDS = 3, KEPT = 500, PLACES = 1024, WAITING = 64, FILES = KINDS * KEPT + PLACES + 64, EVENTS = 256, PATIENCE_US = 1000000 };

/* Its number tells what it does; 0 is none. */
static long number_of[FILES];
static long began_at[FILES];
static int place[PLACES], first_place, places_taken, waiting;
static int kept[KINDS][KEPT], next_kept[KINDS];
static struct sockaddr_in target;
static unsigned char words[4096];
static size_t words_size;
static long came;

static void fail(const char *what)
{
    fprintf(stderr, "strangers: %s: %s\n", what, strerror(errno));
    exit(1);
}

static long now_us(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000L + at.tv_nsec / 1000;
}

static void read_words(const char *hex)
{
    unsigned byte;

    for (; sscanf(hex, "%2x", &byte) == 1 && words_size < sizeof words; hex += 2)
        words[words_size++] = byte;
}

static in_addr_t from(long number)
{
    static const int first[KINDS] = {1, 2, 4}, count[KINDS] = {1, 2, 4};
    int kind = number % KINDS;

    return htonl(0x7f000000 + first[kind] + number / KINDS % count[kind]);
}

static void closed(int fd)
{
    number_of[fd] = 0;
    close(fd);
}

static void stays(int fd, int kind)
{
    int *oldest = &kept[kind][next_kept[kind]];

    if (*oldest)
        closed(*oldest);
    *oldest = fd;
    next_kept[kind] = (next_kept[kind] + 1) % KEPT;
}

/* What it says is lost if the other end has closed already. */
static void let_in(int fd)
{
    static const char other[] = "\0\016GET / HTTP/1.0";
    long number = number_of[fd];
    int kind = number % KINDS;

    came++;
    if (kind == 1 && number / KINDS % 4 >= 2) {
        closed(fd);
        return;
    }
    if (kind == 1)
        (void)!write(fd, other, sizeof other - 1);
    if (kind == 2)
        (void)!write(fd, words, words_size);
    stays(fd, kind);
}

/* Those who wait stand in the order in which they have come; some were let in long ago. */
static void forget(long now)
{
    while (places_taken) {
        int fd = place[first_place];

        if (fd && now - began_at[fd] < PATIENCE_US)
            break;
        if (fd) {
            closed(fd);
            waiting--;
        }
        first_place = (first_place + 1) % PLACES;
        places_taken--;
    }
}

static void answered(int fd)
{
    int i, at, error = 0;
    socklen_t size = sizeof error;

    for (i = 0; i < places_taken; i++) {
        at = (first_place + i) % PLACES;
        if (place[at] == fd) {
            place[at] = 0;
            waiting--;
        }
    }
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) || error)
        closed(fd);
    else
        let_in(fd);
}

static void connects(int poll, long number)
{
    static const struct linger at_once = {1, 0};
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = from(number)};
    struct epoll_event event = {.events = EPOLLOUT | EPOLLONESHOT};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    if (fd < 0 || fd >= FILES)
        fail("no socket");
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    /* A port is found when it is known for whom: then each address has all of them. */
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&own, sizeof own))
        fail("an address of the loopback cannot be had");
    event.data.fd = fd;
    if ((connect(fd, (struct sockaddr *)&target, sizeof target) && errno != EINPROGRESS)
        || epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event)) {
        close(fd);
        return;
    }
    number_of[fd] = number;
    began_at[fd] = now_us();
    place[(first_place + places_taken++) % PLACES] = fd;
    waiting++;
}

static int may_come(void)
{
    return waiting < WAITING && places_taken < PLACES;
}

int main(int argc, char **argv)
{
    struct rlimit files;
    struct epoll_event events[EVENTS], end = {.events = EPOLLIN, .data.fd = 0};
    long rate, ms, begin, now, due, missed = 0, number = 0;
    int poll, got, i;
    char ignored[256];

    target.sin_family = AF_INET;
    if (argc != 6 || inet_pton(AF_INET, argv[1], &target.sin_addr) != 1 || !(target.sin_port = htons(atoi(argv[2])))
        || (rate = atol(argv[3])) <= 0 || (ms = atol(argv[4])) <= 0) {
        fprintf(stderr, "usage: strangers ADDRESS PORT RATE MS WORDS\n");
        return 2;
    }
    read_words(argv[5]);
    signal(SIGPIPE, SIG_IGN);
    if (getrlimit(RLIMIT_NOFILE, &files))
        fail("it cannot be known how many files it may open");
    if (files.rlim_max < FILES)
        files.rlim_max = FILES;
    files.rlim_cur = FILES;
    if (setrlimit(RLIMIT_NOFILE, &files))
        fail("it may not open as many files as it needs");
    if ((poll = epoll_create1(0)) < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, 0, &end))
        fail("it cannot wait");
    begin = now_us();
    for (;;) {
        now = now_us();
        if (now - begin >= ms * 1000)
            break;
        forget(now);
        due = (now - begin) * rate / 1000000 - missed;
        if (due - number > EVENTS) {
            missed += due - number - EVENTS;
            due = number + EVENTS;
        }
        for (i = 0; number < due && may_come() && i < EVENTS; i++)
            connects(poll, ++number);
        got = epoll_wait(poll, events, EVENTS, number < due && may_come() ? 0 : 1);
        for (i = 0; i < got; i++) {
            if (events[i].data.fd)
                answered(events[i].data.fd);
            else if (read(0, ignored, sizeof ignored) <= 0)
                return 0;
        }
    }
    printf("came %ld of %ld\n", came, number);
    return 0;
}
