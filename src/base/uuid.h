/* Random ids in the familiar form: "9b2f1c34-0d5e-4c1a-8f7e-6a5b4c3d2e1f". */
#pragma once

enum { UUID_LEN = 36 };

/* A version 4 UUID in lower case, UUID_LEN bytes and a NUL; -errno without randomness. */
int uuid4(char out[UUID_LEN + 1]);
