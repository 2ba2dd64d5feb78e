#include "io/watch.h"
