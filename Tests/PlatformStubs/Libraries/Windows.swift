// What Windows lacks of POSIX. What is declared here hides glibc's; a function does so only with the same types. What
// its C library has is listed here:
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
@available(*, unavailable, message: "Windows has no kill") func kill(_ process: pid_t, _ number: Int32) -> Int32 { 0 }

// MARK: What its C library has

/// https://learn.microsoft.com/cpp/c-runtime-library/reference/open-osfhandle
func _open_osfhandle(_ osfhandle: Int, _ flags: Int32) -> Int32 { 0 }
/// https://learn.microsoft.com/cpp/c-runtime-library/reference/get-osfhandle
func _get_osfhandle(_ fd: Int32) -> Int { 0 }
/// https://learn.microsoft.com/cpp/c-runtime-library/reference/close
func _close(_ fd: Int32) -> Int32 { 0 }
/// https://learn.microsoft.com/cpp/c-runtime-library/reference/set-errno
func _set_errno(_ value: Int32) -> Int32 { 0 }

// MARK: Types and constants
// https://learn.microsoft.com/cpp/c-runtime-library/errno-constants and .../cpp/c-runtime-library/file-constants

@available(*, unavailable, message: "Windows has no dirent") struct dirent {}
@available(*, unavailable, message: "Windows has no mode_t") typealias mode_t = UInt32
@available(*, unavailable, message: "Windows has no EDQUOT") var EDQUOT: Int32 { 0 }
@available(*, unavailable, message: "Windows has no ESTALE") var ESTALE: Int32 { 0 }
@available(*, unavailable, message: "Windows has no O_CLOEXEC") var O_CLOEXEC: Int32 { 0 }
@available(*, unavailable, message: "Windows has no O_DIRECTORY") var O_DIRECTORY: Int32 { 0 }
@available(*, unavailable, message: "Windows has no O_NOFOLLOW") var O_NOFOLLOW: Int32 { 0 }
@available(*, unavailable, message: "Windows has no O_NONBLOCK") var O_NONBLOCK: Int32 { 0 }
@available(*, unavailable, message: "Windows has no STDERR_FILENO") var STDERR_FILENO: Int32 { 0 }
@available(*, unavailable, message: "Windows has no STDIN_FILENO") var STDIN_FILENO: Int32 { 0 }
@available(*, unavailable, message: "Windows has no STDOUT_FILENO") var STDOUT_FILENO: Int32 { 0 }

// MARK: Functions

// What Windows has of these under the same name takes paths in the language's bytes, or does something else: its rename
// replaces nothing.
@available(*, unavailable, message: "Windows has no such access")
func access(_ path: UnsafePointer<CChar>, _ mode: Int32) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such chmod")
func chmod(_ path: UnsafePointer<CChar>, _ mode: UInt32) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such close")
func close(_ file: Int32) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such closedir")
func closedir(_ stream: OpaquePointer) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such dup")
func dup(_ file: Int32) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such fchmod")
func fchmod(_ file: Int32, _ mode: UInt32) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such fdopendir")
func fdopendir(_ file: Int32) -> OpaquePointer! { nil }
@available(*, unavailable, message: "Windows has no such flock")
func flock(_ file: Int32, _ operation: Int32) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such fsync")
func fsync(_ file: Int32) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such ftruncate")
func ftruncate(_ file: Int32, _ length: Int) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such gethostname")
func gethostname(_ name: UnsafeMutablePointer<CChar>!, _ count: Int) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such getpid")
func getpid() -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such getuid")
func getuid() -> UInt32 { 0 }
@available(*, unavailable, message: "Windows has no such isatty")
func isatty(_ file: Int32) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such link")
func link(_ path: UnsafePointer<CChar>, _ other: UnsafePointer<CChar>) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such lseek")
func lseek(_ file: Int32, _ offset: Int, _ origin: Int32) -> Int { 0 }
@available(*, unavailable, message: "Windows has no such mkdir")
func mkdir(_ path: UnsafePointer<CChar>, _ mode: UInt32) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such mmap")
func mmap(
  _ start: UnsafeMutableRawPointer!, _ count: Int, _ protection: Int32, _ flags: Int32, _ file: Int32, _ offset: Int
) -> UnsafeMutableRawPointer! { nil }
@available(*, unavailable, message: "Windows has no such munmap")
func munmap(_ start: UnsafeMutableRawPointer!, _ count: Int) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such open")
func open(_ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such open")
func open(_ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: UInt32) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such openat")
func openat(_ folder: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such openat")
func openat(_ folder: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: UInt32) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such opendir")
func opendir(_ path: UnsafePointer<CChar>) -> OpaquePointer! { nil }
@available(*, unavailable, message: "Windows has no such pipe")
func pipe(_ ends: UnsafeMutablePointer<Int32>!) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such pread")
func pread(_ file: Int32, _ bytes: UnsafeMutableRawPointer!, _ count: Int, _ offset: Int) -> Int { 0 }
@available(*, unavailable, message: "Windows has no such pwrite")
func pwrite(_ file: Int32, _ bytes: UnsafeRawPointer!, _ count: Int, _ offset: Int) -> Int { 0 }
@available(*, unavailable, message: "Windows has no such read")
func read(_ file: Int32, _ bytes: UnsafeMutableRawPointer!, _ count: Int) -> Int { 0 }
@available(*, unavailable, message: "Windows has no such remove")
func remove(_ path: UnsafePointer<CChar>!) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such rename")
func rename(_ path: UnsafePointer<CChar>!, _ other: UnsafePointer<CChar>!) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such rmdir")
func rmdir(_ path: UnsafePointer<CChar>) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such setenv")
func setenv(_ name: UnsafePointer<CChar>!, _ value: UnsafePointer<CChar>, _ replaces: Int32) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such sleep")
func sleep(_ seconds: UInt32) -> UInt32 { 0 }
@available(*, unavailable, message: "Windows has no such symlink")
func symlink(_ path: UnsafePointer<CChar>, _ other: UnsafePointer<CChar>) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such sysconf")
func sysconf(_ name: Int32) -> Int { 0 }
@available(*, unavailable, message: "Windows has no such unlink")
func unlink(_ path: UnsafePointer<CChar>) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such usleep")
func usleep(_ microseconds: UInt32) -> Int32 { 0 }
@available(*, unavailable, message: "Windows has no such write")
func write(_ file: Int32, _ bytes: UnsafeRawPointer!, _ count: Int) -> Int { 0 }
