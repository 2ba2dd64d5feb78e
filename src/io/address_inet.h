/* Inside io/ only: a loopback host and port as the kernel wants them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/why.h"

/* False for any host that is not loopback; names are never looked up. */
bool address_inet(const char *host, uint16_t port, struct sockaddr_storage *ret,
		  socklen_t *ret_len);

/* The sentence for such a host. */
int address_refuse_host(const char *host, struct why *why);
