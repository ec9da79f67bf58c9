// The C library of Swift's static Linux SDK: https://git.musl-libc.org/cgit/musl/tree/include, whose headers are named
// below.

/// signal.h. The function of the same name is an initialiser here: Swift has no way to declare both.
package struct sigaction {
  struct Handlers {
    var sa_handler: (@convention(c) (Int32) -> Void)!
    var sa_sigaction: (@convention(c) (Int32, UnsafeMutablePointer<siginfo_t>?, UnsafeMutableRawPointer?) -> Void)!
  }
  var __sa_handler = Handlers()
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

/// pthread.h
package typealias pthread_t = OpaquePointer
package struct pthread_attr_t {
  package init() {}
}
@discardableResult
func pthread_attr_init(_ attributes: UnsafeMutablePointer<pthread_attr_t>!) -> Int32 { 0 }
@discardableResult
func pthread_attr_destroy(_ attributes: UnsafeMutablePointer<pthread_attr_t>!) -> Int32 { 0 }
@discardableResult
func pthread_attr_setstacksize(_ attributes: UnsafeMutablePointer<pthread_attr_t>!, _ bytes: Int) -> Int32 { 0 }
func pthread_create(
  _ thread: UnsafeMutablePointer<pthread_t?>!, _ attributes: UnsafePointer<pthread_attr_t>?,
  _ body: (@convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?)!, _ context: UnsafeMutableRawPointer?
) -> Int32 { 0 }
func pthread_self() -> pthread_t! { nil }
func pthread_equal(_ one: pthread_t?, _ other: pthread_t?) -> Int32 { 0 }
@discardableResult
func pthread_detach(_ thread: pthread_t!) -> Int32 { 0 }
@discardableResult
func pthread_join(_ thread: pthread_t!, _ result: UnsafeMutablePointer<UnsafeMutableRawPointer?>?) -> Int32 { 0 }
