"""SQL for a PostgreSQL server, by libpq in this process: a psql for each question takes longer than its answer."""
import ctypes
import functools

# What the server remarks is nobody's business here.
Remark = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
UNHEARD = Remark(lambda _, text: None)
BAD_ANSWERS = (5, 6, 7)  # PGRES_BAD_RESPONSE, PGRES_NONFATAL_ERROR, PGRES_FATAL_ERROR


@functools.lru_cache(None)
def library():
    lib = ctypes.CDLL("libpq.so.5")
    for name, result, *takes in (
            ("PQconnectdb", ctypes.c_void_p, ctypes.c_char_p), ("PQstatus", ctypes.c_int, ctypes.c_void_p),
            ("PQerrorMessage", ctypes.c_char_p, ctypes.c_void_p), ("PQfinish", None, ctypes.c_void_p),
            ("PQsetNoticeProcessor", ctypes.c_void_p, ctypes.c_void_p, Remark, ctypes.c_void_p),
            ("PQexec", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p),
            ("PQresultStatus", ctypes.c_int, ctypes.c_void_p), ("PQclear", None, ctypes.c_void_p),
            ("PQntuples", ctypes.c_int, ctypes.c_void_p), ("PQnfields", ctypes.c_int, ctypes.c_void_p),
            ("PQgetvalue", ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, takes
    return lib


def query(url, text):
    """
    The last statement's rows, each a line with bars between its columns, as `psql -At` has them. RuntimeError has
    the server's words.
    """
    lib = library()
    connection = lib.PQconnectdb(url.encode())
    answer = None
    try:
        if lib.PQstatus(connection) != 0:
            raise RuntimeError(lib.PQerrorMessage(connection).decode(errors="replace"))
        lib.PQsetNoticeProcessor(connection, UNHEARD, None)
        answer = lib.PQexec(connection, text.encode())
        if lib.PQresultStatus(answer) in BAD_ANSWERS:
            raise RuntimeError(lib.PQerrorMessage(connection).decode(errors="replace"))
        columns = range(lib.PQnfields(answer))
        return "\n".join("|".join(lib.PQgetvalue(answer, row, column).decode(errors="replace") for column in columns)
                         for row in range(lib.PQntuples(answer)))
    finally:
        lib.PQclear(answer)
        lib.PQfinish(connection)
