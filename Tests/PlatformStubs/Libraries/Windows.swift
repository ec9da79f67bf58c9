// What Windows lacks of POSIX. Types and macros with these names hide glibc's. What its C library has is listed here:
// https://learn.microsoft.com/cpp/c-runtime-library/reference/crt-alphabetical-function-reference

@available(*, unavailable, message: "Windows has no threads of POSIX") struct pthread_mutex_t {}
@available(*, unavailable, message: "Windows has no threads of POSIX") struct pthread_cond_t {}
@available(*, unavailable, message: "Windows' stat has no nanoseconds") package struct stat {}
@available(*, unavailable, message: "Windows has no limits of POSIX") struct rlimit {}
@available(*, unavailable, message: "Windows has no sigaction") package struct sigaction {}
@available(*, unavailable, message: "Windows has no poll") struct pollfd {}
@available(*, unavailable, message: "Windows has no fcntl") var F_SETFD: Int32 { 0 }
@available(*, unavailable, message: "Windows' sockets are no descriptors")
func send(_ socket: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ flags: Int32) -> Int { 0 }
@available(*, unavailable, message: "Windows' sockets are no descriptors") var MSG_NOSIGNAL: Int32 { 0 }
@available(*, unavailable, message: "Windows' sockets are no descriptors") var SOCK_STREAM: Int32 { 0 }
@available(*, unavailable, message: "Windows has no dlsym")
func dlsym(_ handle: UnsafeMutableRawPointer?, _ name: UnsafePointer<CChar>) -> UnsafeMutableRawPointer? { nil }
@available(*, unavailable, message: "Windows has no fsync") func fsync(_ descriptor: Int32) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no kill") func kill(_ process: pid_t, _ number: Int32) -> Int32 { 0 }
