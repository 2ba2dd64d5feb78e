/*
 * HTTP/1.1 responses, as a client of a JSON-RPC endpoint reads them: a strict
 * push parser in the shape of wire/framing.h. A message is a response's body.
 *
 * Bodies end by Content-Length, by chunks or by the end of the connection.
 * Interim responses (100 Continue and the like) are skipped. Whatever two
 * parsers could read differently is refused.
 */
#pragma once

#include "wire/framing.h"
#include "wire/http/http1_head.h"

enum http1_response_part {
	RESPONSE_STATUS,
	RESPONSE_HEADERS,
	RESPONSE_BODY,
	RESPONSE_CHUNK_LINE,
	RESPONSE_CHUNK_DATA,
	RESPONSE_CHUNK_END,
	RESPONSE_TRAILERS,
	RESPONSE_REFUSED,
};

/* The state of framing_http_response. The first three are the caller's to read
 * after FRAME_MESSAGE, until the next call. */
struct http1_response {
	int status;
	bool keep_alive; /* the connection may carry another request */
	char reason[64]; /* printable, cut to fit */

	enum http1_response_part part;
	struct framing_limits limits;
	size_t looked;      /* bytes of the line at hand that hold no newline */
	size_t head_bytes;  /* header lines so far; trailers count too */
	unsigned n_headers; /* of them */
	bool minor;         /* HTTP/1.1 rather than 1.0 */
	struct http_end end;
	uint64_t left;      /* bytes of the body, or of the chunk, still to come */
	struct buf body;    /* what the chunks held */
	struct error error; /* RESPONSE_REFUSED */
};

/*
 * frame.status of a message is the response's status. A body that ends with the
 * connection is a message once `eof` is told. `limits` are those of requests:
 * message is the largest body, http_line the longest line.
 */
extern const struct framing framing_http_response;
