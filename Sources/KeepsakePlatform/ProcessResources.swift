#if !os(Windows)
import Foundation

/// What the system grants this process, and what it takes.
package struct ProcessResources: Sendable {
  /// In seconds, of all threads since the process began.
  package var processorSeconds: Double
  package var residentBytes: Double
  package var openDescriptors: Int?
  package var maximumDescriptors: Int?

  /// Nil where the system doesn't tell it in files: everywhere but on Linux.
  package static var current: ProcessResources? {
    #if os(Linux)
    guard let text = try? String(contentsOfFile: "/proc/self/stat", encoding: .utf8),
      let fields = text.split(separator: ")").last?.split(separator: " "), fields.count > 21,
      let user = Double(fields[11]), let system = Double(fields[12]), let pages = Double(fields[21])
    else { return nil }
    return ProcessResources(
      processorSeconds: (user + system) / Double(sysconf(Int32(_SC_CLK_TCK))),
      residentBytes: pages * Double(sysconf(Int32(_SC_PAGESIZE))),
      openDescriptors: try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count,
      maximumDescriptors: descriptorLimit().map { Int(clamping: $0.rlim_cur) })
    #else
    return nil
    #endif
  }

  /// Raises the soft limit of open files to the hard one, as far as the system allows it.
  ///
  /// - Parameter maximum: More than is ever needed; "unlimited" isn't a number that every system accepts.
  /// - Returns: How many files may be open now, at most `maximum`; nil if the system doesn't tell.
  package static func raiseDescriptorLimit(upTo maximum: Int) -> Int? {
    guard var limit = descriptorLimit() else { return nil }
    let wanted = min(limit.rlim_max, rlim_t(maximum))
    if limit.rlim_cur < wanted {
      var raised = limit
      raised.rlim_cur = wanted
      if setrlimit(descriptors, &raised) == 0 { limit = raised }
    }
    return Int(min(limit.rlim_cur, rlim_t(maximum)))
  }

  private static func descriptorLimit() -> rlimit? {
    var limit = rlimit()
    return getrlimit(descriptors, &limit) == 0 ? limit : nil
  }

  #if canImport(Glibc)
  private static let descriptors = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  #else
  private static let descriptors = RLIMIT_NOFILE
  #endif

  /// Lets the system have back what large blocks took. By default glibc keeps freed memory for as long as something
  /// small lies behind it, and raises the size from which it doesn't with every large block.
  package static func returnFreedMemory() {
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
