/*
 * The head of an HTTP request, read line by line: the half of the parser that
 * knows what lines mean. wire/http/http1.c finds the lines.
 *
 * Functions that refuse return the HTTP status to answer with, else 0.
 */
#pragma once

#include "base/error.h"
#include "wire/http/http1.h"

/* What the headers of a request or a response say about its end. */
struct http_end {
	uint64_t length; /* Content-Length, UINT64_MAX if it is larger than that */
	bool has_length;
	bool chunked;
	bool close; /* Connection: close */
	bool stay;  /* Connection: keep-alive */
};

struct http_head {
	struct http_request request;
	struct http_header *headers; /* what request.headers shows; kept over requests */
	unsigned n_allocated;
	unsigned n_max;

	struct http_end end;
	bool has_host;
	bool expects_continue;
};

void http_head_done(struct http_head *h);

/* Ready for another request; keeps its memory. */
void http_head_reset(struct http_head *h);

/* A line comes without its CRLF. Texts point into it. */
int http_head_request_line(struct http_head *h, const char *line, size_t n, struct error *error);
int http_head_header(struct http_head *h, const char *line, size_t n, struct error *error);

/* After the last line: is this a valid request? */
int http_head_finish(struct http_head *h, struct error *error);

/* The lines read so far were moved from `from` to `to`. */
void http_head_rebase(struct http_head *h, const char *from, const char *to);

/* One header line, of a head or of a trailer; 400 if it is invalid. */
int http_header_parse(const char *line, size_t n, struct http_header *ret, struct error *error);

/* Notes what the header says about the end; a status if that is invalid or ambiguous. */
int http_end_header(struct http_end *end, const struct http_header *header, struct error *error);

/* False if it holds a control character other than a tab. */
bool http_is_clean(const char *p, size_t n);

/* Fills error with the code that goes with the status, and returns the status. */
int http_refuse(struct error *error, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
