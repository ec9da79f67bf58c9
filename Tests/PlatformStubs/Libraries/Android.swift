// Android's C library: https://android.googlesource.com/platform/bionic/+/refs/heads/main/libc/include/, whose headers
// are named below.

/// bits/signal_types.h: a union without a name, whose members Swift sees as the type's own. The function of the same
/// name is an initialiser here: Swift has no way to declare both.
package struct sigaction {
  var sa_handler: (@convention(c) (Int32) -> Void)!
  var sa_sigaction: (@convention(c) (Int32, UnsafeMutablePointer<siginfo_t>?, UnsafeMutableRawPointer?) -> Void)!
  var sa_mask = sigset_t()
  var sa_flags: Int32 = 0

  init() {}
  @discardableResult
  init(_ number: Int32, _ action: UnsafePointer<sigaction>?, _ old: UnsafeMutablePointer<sigaction>?) {}
}

/// sys/socket.h; a macro
let SOCK_STREAM: Int32 = 1

/// sys/resource.h; a macro
let RLIMIT_NOFILE: Int32 = 7
func getrlimit(_ resource: Int32, _ limit: UnsafeMutablePointer<rlimit>!) -> Int32 { 0 }
func setrlimit(_ resource: Int32, _ limit: UnsafePointer<rlimit>!) -> Int32 { 0 }
