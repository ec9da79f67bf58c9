#if os(Linux)
import Foundation
import Glibc
import KeepsakeInterchange
import TestSupport
import Testing

/// Files that made other readers crash or fill the memory. They are read in a process that the system ends if it
/// exceeds the limits.
struct BadFileTests {
  /// The limits for one file, in addition to what the process used before it.
  private static let bytes: rlim_t = 64 << 20
  private static let seconds: rlim_t = 1

  @Test("reading a broken file gives a value or a typed error, within a second and 64 MiB", .needsRealFiles)
  func broken() async throws {
    let result = try await #require(processExitsWith: .success, observing: [\.standardOutputContent]) {
      for set in ["bplist_bad", "bplist_ok", "nskeyed"] { try BadFileTests.readAll(set) }
    }
    let lines = String(decoding: result.standardOutputContent, as: UTF8.self).split(separator: "\n").filter {
      $0.contains("files,")
    }
    #expect(lines.count == 3)
    for line in lines { print(line) }
  }

  @Test("a process that exceeds the limit of memory or time fails, so the test above can fail")
  func limitsHold() async throws {
    // A status of its own, because a process that throws ends with 1.
    await #expect(processExitsWith: .exitCode(3)) {
      try BadFileTests.limit()
      // Not with Swift's own allocation, whose failure would print a report of the whole process.
      exit(malloc(65 << 20) == nil ? 3 : 0)
    }
    await #expect(processExitsWith: .signal(SIGXCPU)) {
      try BadFileTests.limit()
      var sum: UInt64 = 1
      while sum != 0 { sum = sum &* 3 | 1 }
    }
  }

  private static func readAll(_ set: String) throws {
    var (values, errors, archives) = (0, 0, 0)
    let files = try Corpus.files(set)
    for file in files {
      let data = try Data(contentsOf: file)
      try limit()
      do {
        let list = try PropertyList(data)
        values += 1
        guard list["$objects"] != nil else { continue }
        let archive = try KeyedArchive(list)
        _ = try archive.tree()
        archives += 1
        _ = try archive.decode([String: [String]].self, key: archive.top.first?.key ?? "")
      } catch is PropertyListError {
        errors += 1
      }
    }
    print("\(set): \(files.count) files, \(values) property lists, \(archives) keyed archives, \(errors) typed errors")
  }

  /// Sets the limits: from here on, the system ends the process if it exceeds them.
  private static func limit() throws {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let kilobytes = try #require(status.firstMatch(of: /VmData:\s*(\d+) kB/).flatMap { rlim_t($0.1) })
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    // The limit is in whole seconds, and the current one may be almost over.
    let used = rlim_t(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + 1)
    try set(__rlimit_resource_t(RLIMIT_DATA.rawValue), kilobytes << 10 + bytes)
    try set(__rlimit_resource_t(RLIMIT_CPU.rawValue), used + 1 + seconds)
  }

  private static func set(_ resource: __rlimit_resource_t, _ value: rlim_t) throws {
    var limit = rlimit()
    getrlimit(resource, &limit)
    limit.rlim_cur = value
    let isSet = setrlimit(resource, &limit) == 0
    try #require(isSet)
  }
}
#endif
