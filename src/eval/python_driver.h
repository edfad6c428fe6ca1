// What the interpreter in the sandbox runs: it runs the program and says over descriptor 3 how that went.
#pragma once

namespace sinkscope {

/// Length of the secret that the driver reads from descriptor 3.
inline constexpr int verdict_secret_bytes = 32;

/// The conversation on descriptor 3, a stream socket: the driver reads the secret, sends "S" as it begins
/// with the program, then "P" and the secret if exec() came back, or "F" and one line about the exception. A
/// program that leaves early sends nothing, and one that writes to the descriptor does not know the secret
/// unless it searches the interpreter it shares with the driver.
inline constexpr const char* python_driver = R"python(
import os, sys

def drive():
    leave, send = os._exit, os.write
    secret = os.read(3, 32)
    with open(0, "rb") as file:
        program = file.read().decode("utf-8", "replace")
    os.open("/dev/null", os.O_RDONLY)
    send(3, b"S")
    try:
        exec(program, {})
    except BaseException as error:
        try:
            line = " ".join((type(error).__name__ + ": " + str(error)).split())
        except BaseException:
            line = type(error).__name__
        send(3, b"F" + line.encode("utf-8", "replace")[:400])
        leave(1)
    send(3, b"P" + secret)
    leave(0)

drive()
)python";

}  // namespace sinkscope
