// Apple's C library: https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/
// and the headers of https://github.com/apple-oss-distributions/xnu, named below.

/// bsd/sys/stat.h: times are called st_*timespec, and not st_*tim. Its mode_t has 16 bits; here it is glibc's, as the
/// constants are.
package struct stat {
  package var st_dev: Int32 = 0
  package var st_mode: mode_t = 0
  package var st_ino: UInt64 = 0
  package var st_mtimespec = timespec()
  package var st_ctimespec = timespec()
  package var st_size: Int64 = 0
  package var st_flags: UInt32 = 0

  package init() {}
}
let SF_DATALESS: Int32 = 0x4000_0000
func lstat(_ path: UnsafePointer<CChar>!, _ status: UnsafeMutablePointer<stat>!) -> Int32 { 0 }
func fstat(_ file: Int32, _ status: UnsafeMutablePointer<stat>!) -> Int32 { 0 }
func fstatat(_ folder: Int32, _ path: UnsafePointer<CChar>!, _ status: UnsafeMutablePointer<stat>!, _ flags: Int32)
  -> Int32
{ 0 }

// bsd/sys/stdio.h; macros, which are Int32 in Swift.
let RENAME_SWAP: Int32 = 2
let RENAME_EXCL: Int32 = 4
func renameatx_np(
  _ fromfd: Int32, _ from: UnsafePointer<CChar>!, _ tofd: Int32, _ to: UnsafePointer<CChar>!, _ flags: UInt32
) -> Int32 { 0 }

/// bsd/sys/fcntl.h
let F_FULLFSYNC: Int32 = 51

// pthread.h of libpthread
package struct _opaque_pthread_t {}
package typealias pthread_t = UnsafeMutablePointer<_opaque_pthread_t>
package struct pthread_attr_t {
  package init() {}
}
@discardableResult
func pthread_attr_init(_ attributes: UnsafeMutablePointer<pthread_attr_t>) -> Int32 { 0 }
@discardableResult
func pthread_attr_destroy(_ attributes: UnsafeMutablePointer<pthread_attr_t>) -> Int32 { 0 }
@discardableResult
func pthread_attr_setstacksize(_ attributes: UnsafeMutablePointer<pthread_attr_t>, _ bytes: Int) -> Int32 { 0 }
func pthread_create(
  _ thread: UnsafeMutablePointer<pthread_t?>, _ attributes: UnsafePointer<pthread_attr_t>?,
  _ body: @convention(c) (UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?
) -> Int32 { 0 }
func pthread_self() -> pthread_t { .allocate(capacity: 1) }
func pthread_equal(_ one: pthread_t?, _ other: pthread_t?) -> Int32 { 0 }
@discardableResult
func pthread_detach(_ thread: pthread_t) -> Int32 { 0 }
@discardableResult
func pthread_join(_ thread: pthread_t, _ result: UnsafeMutablePointer<UnsafeMutableRawPointer?>?) -> Int32 { 0 }
@discardableResult
func pthread_cond_timedwait_relative_np(
  _ condition: UnsafeMutablePointer<pthread_cond_t>, _ mutex: UnsafeMutablePointer<pthread_mutex_t>,
  _ time: UnsafePointer<timespec>?
) -> Int32 { 0 }
@available(*, unavailable, message: "Apple's systems have no pthread_condattr_setclock")
func pthread_condattr_setclock(_ attributes: UnsafeMutablePointer<pthread_condattr_t>, _ clock: clockid_t) -> Int32 {
  0
}

/// bsd/sys/signal.h. The function of the same name is an initialiser here: Swift has no way to declare both.
package struct sigaction {
  struct Handlers {
    var __sa_handler: (@convention(c) (Int32) -> Void)!
    var __sa_sigaction: (@convention(c) (Int32, UnsafeMutablePointer<siginfo_t>?, UnsafeMutableRawPointer?) -> Void)!
  }
  var __sigaction_u = Handlers()
  var sa_mask = sigset_t()
  var sa_flags: Int32 = 0

  init() {}
  @discardableResult
  init(_ number: Int32, _ action: UnsafePointer<sigaction>?, _ old: UnsafeMutablePointer<sigaction>?) {}
}
extension siginfo_t {
  var si_pid: pid_t { 0 }
}

/// bsd/sys/socket.h; a macro
let SOCK_STREAM: Int32 = 1
@available(*, unavailable, message: "Apple's systems have no MSG_NOSIGNAL before macOS 15")
var MSG_NOSIGNAL: Int32 { 0 }

/// bsd/sys/resource.h; a macro
let RLIMIT_NOFILE: Int32 = 8
func getrlimit(_ resource: Int32, _ limit: UnsafeMutablePointer<rlimit>!) -> Int32 { 0 }
func setrlimit(_ resource: Int32, _ limit: UnsafePointer<rlimit>!) -> Int32 { 0 }

@available(*, unavailable, message: "Apple's systems have no posix_fadvise")
func posix_fadvise(_ descriptor: Int32, _ offset: off_t, _ length: off_t, _ advice: Int32) -> Int32 { 0 }
