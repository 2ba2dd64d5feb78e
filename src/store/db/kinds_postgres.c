/* Built with libpq. */
#include "store/db/driver.h"

const struct store_ops *const store_kinds[] = {&sqlite_ops, &postgres_ops, NULL};
