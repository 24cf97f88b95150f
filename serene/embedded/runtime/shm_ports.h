/* The switch's side of shared-memory ports: a UNIX socket at the port's path, and memory for a process that connects.
 *
 * One process at a time has the port: its connection is its lease, which the kernel ends with the process. The next
 * process gets new memory, without data of the last one. */
#ifndef SERENE_SHM_PORTS_H
#define SERENE_SHM_PORTS_H

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "shm.h"

struct shm_port {
    struct shm_end end;
    struct sockaddr_un address;
    dev_t device;                /* of the socket in the file system, so that no other one is unlinked */
    ino_t inode;
};

/* A listening socket at the path, or a negative errno. A socket at which no switch listens any more is replaced. */
static int shm_listen(struct shm_port *shm, const char *path) {
    struct stat made;
    socklen_t size = shm_address(path, &shm->address);
    if (!size) return -ENAMETOOLONG;
    const struct sockaddr *address = (struct sockaddr *)&shm->address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    fchmod(fd, 0600);            /* mode of the file: only this user's processes may connect */
    int failed = bind(fd, address, size);
    if (failed && errno == EADDRINUSE) {
        int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int stale = !lstat(path, &made) && S_ISSOCK(made.st_mode) && probe >= 0 && connect(probe, address, size) && errno == ECONNREFUSED && !unlink(path);
        if (probe >= 0) close(probe);
        errno = EADDRINUSE;
        if (stale) failed = bind(fd, address, size);
    }
    if (failed || listen(fd, 8) || stat(path, &made)) {
        int error = errno;
        close(fd);
        return -error;
    }
    shm->device = made.st_dev;
    shm->inode = made.st_ino;
    return fd;
}

static void shm_unlisten(struct shm_port *shm) {
    struct stat there;
    shm_end(&shm->end);
    if (!stat(shm->address.sun_path, &there) && there.st_dev == shm->device && there.st_ino == shm->inode)
        unlink(shm->address.sun_path);
}

/* Memory that the other end cannot shrink. NULL: it could not be created, see errno. */
static struct shm_memory *shm_make(int *fd) {
    *fd = memfd_create("serene-port", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0) return NULL;
    void *memory = MAP_FAILED;
    if (!(errno = posix_fallocate(*fd, 0, sizeof(struct shm_memory)))
        && !fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        memory = mmap(NULL, sizeof(struct shm_memory), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (memory != MAP_FAILED) return memory;
    int error = errno;
    close(*fd);
    errno = error;
    return NULL;
}

static void shm_accept_one(struct shm_port *shm, int connection) {
    int fd;
    struct shm_memory *memory = shm_make(&fd);
    if (!memory) {
        uint32_t why[2] = {SHM_GREETING, (uint32_t)errno};
        if (send(connection, why, sizeof why, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) { /* the process has gone already */ }
        close(connection);
        return;
    }
    uint32_t greeting[2] = {SHM_GREETING, SHM_RING_BYTES};
    struct iovec part = {greeting, sizeof greeting};
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof fd)] = {0};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    *CMSG_FIRSTHDR(&message) =
        (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof fd);
    shm_begin(&shm->end, memory, connection, 1);
    if (sendmsg(connection, &message, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof greeting) shm_end(&shm->end);
    close(fd);
}

static void shm_look(struct shm_port *shm) {
    struct pollfd wait = {.fd = shm->end.socket, .events = POLLRDHUP};
    if (!shm->end.memory) return;
    shm_woken(&shm->end);
    if (shm->end.closed || (poll(&wait, 1, 0) > 0 && wait.revents)) shm_end(&shm->end);   /* even with unread bytes */
}

/* After poll: detects processes that have gone, and accepts new ones. A process that connects while another one has the
 * port is refused. */
static void shm_attend(struct shm_port *shm, int listener) {
    shm_look(shm);
    for (int most = 8; most > 0; most--) {
        int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (connection < 0) return;
        shm_look(shm);           /* the port's last process may have gone before this one connected */
        if (shm->end.memory) close(connection);
        else shm_accept_one(shm, connection);
    }
}

#endif
