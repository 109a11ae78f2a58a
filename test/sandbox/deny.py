"""deny.py WHAT COMMAND…: runs a command under a kernel that refuses new user namespaces or Landlock, as many containers do.

A seccomp filter makes the calls fail with EPERM; everything started below inherits it.
"""

import ctypes
import os
import struct
import sys

X86 = os.uname().machine == "x86_64"
CLONE, CLONE3, UNSHARE = (56, 435, 272) if X86 else (220, 435, 97)
ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
denied = sys.argv[1].split(",")
code = [(0x20, 0, 0, 0)]  # the call's number
if "landlock" in denied:
    for number in (444, 445, 446):
        code += [(0x15, 0, 1, number), (0x06, 0, 0, ENOSYS)]
if "namespaces" in denied:
    code += [(0x15, 0, 1, CLONE3), (0x06, 0, 0, ENOSYS)]
    for number in (CLONE, UNSHARE):
        # flags & CLONE_NEWUSER
        code += [(0x15, 0, 4, number), (0x20, 0, 0, 16), (0x45, 0, 1, 0x10000000), (0x06, 0, 0, EPERM), (0x06, 0, 0, ALLOW)]
code.append((0x06, 0, 0, ALLOW))
program = b"".join(struct.pack("<HBBI", *instruction) for instruction in code)
buffer = ctypes.create_string_buffer(program, len(program))
head = ctypes.create_string_buffer(struct.pack("@HxxxxxxQ", len(code), ctypes.addressof(buffer)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, ctypes.c_ulong(1), 0, 0, 0) == 0
assert libc.prctl(22, ctypes.c_ulong(2), head, 0, 0) == 0, ctypes.get_errno()
os.execvp(sys.argv[2], sys.argv[2:])
