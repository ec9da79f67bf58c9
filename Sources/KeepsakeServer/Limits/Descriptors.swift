#if Cloud
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The process's file descriptors, and its memory's settings.
enum Descriptors {
  /// Raises the soft limit of open files to the hard one, as far as the system allows it.
  ///
  /// - Returns: How many files may be open now.
  static func raiseLimit() -> Int {
    #if canImport(Glibc)
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
    let resource = RLIMIT_NOFILE
    #endif
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return 1_024 }
    // More than a server ever needs; "unlimited" isn't a number that every system accepts.
    let wanted = min(limit.rlim_max, rlim_t(1 << 20))
    if limit.rlim_cur < wanted {
      var raised = limit
      raised.rlim_cur = wanted
      if setrlimit(resource, &raised) == 0 { limit = raised }
    }
    return Int(min(limit.rlim_cur, rlim_t(1 << 20)))
  }

  /// Returns how many connections a process with so many descriptors may have open: each may need a second one, for a
  /// file with its body or its response, and the rest of the server needs some, too.
  static func connections(for descriptors: Int) -> Int {
    max(8, min(ServerLimits.connections, (descriptors - ServerLimits.reservedDescriptors) / 2))
  }

  /// Lets the system have back what large messages took. By default glibc keeps freed memory for as long as something
  /// small lies behind it, and raises the size from which it doesn't with every large message.
  static func returnFreedMemory() {
    #if canImport(Glibc)
    typealias SetOption = @convention(c) (Int32, Int32) -> Int32
    // Not in Swift's module of glibc; absent in a static binary, which then does without.
    guard let symbol = dlsym(nil, "mallopt") else { return }
    let setOption = unsafeBitCast(symbol, to: SetOption.self)
    // M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_ARENA_MAX of malloc.h.
    _ = setOption(-3, 256 << 10)
    _ = setOption(-1, 1 << 20)
    _ = setOption(-8, 4)
    #endif
  }
}
#endif
