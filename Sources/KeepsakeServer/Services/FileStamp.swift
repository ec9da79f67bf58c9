#if Cloud
import Foundation
import KeepsakePlatform
import Logging
import Synchronization

/// Tells whether a file was changed or replaced, without reading it.
struct FileStamp: Hashable, Sendable {
  private var device: UInt64
  private var node: UInt64
  /// In bytes.
  private(set) var size: Int64
  private var seconds: Int64
  private var nanoseconds: Int64

  /// Nil if there is no such file, or it can't be examined.
  init?(of url: URL) { self.init(ofFileAt: url.path) }

  init?(ofFileAt path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    (device, node, size) = (UInt64(status.st_dev), UInt64(status.st_ino), Int64(status.st_size))
    let time = FileTime.modified(status)
    (seconds, nanoseconds) = (time.seconds, time.fraction)
  }
}

/// What is read from files that an operator may replace while the server runs.
///
/// Files that can't be read or don't make sense are reported once, and what was read before stays in use: a mistake in
/// a file must not lock every player out.
final class WatchedFiles<Value: Sendable>: Sendable {
  private struct State: Sendable {
    var stamps: [FileStamp?]
    var value: Value
  }
  /// Their paths: those of URLs take longer to get than the files' stamps.
  private let files: [String]
  private let what: String
  private let read: @Sendable () throws -> Value
  private let logger: Logger
  private let state: Mutex<State>

  /// - Parameters:
  ///   - what: What the files have, for the log, such as "app keys".
  ///   - read: Reads the files; what it throws the first time is thrown here.
  init(_ files: [URL], what: String, logger: Logger, read: @escaping @Sendable () throws -> Value) throws {
    (self.files, self.what, self.read, self.logger) = (files.map(\.path), what, read, logger)
    // Before reading: a change in between is noticed by the next look.
    let stamps = self.files.map(FileStamp.init(ofFileAt:))
    state = Mutex(State(stamps: stamps, value: try read()))
  }

  /// Costs a system call for each file.
  var value: Value {
    let stamps = files.map(FileStamp.init(ofFileAt:))
    return state.withLock { state in
      guard state.stamps != stamps else { return state.value }
      return load(stamps, &state)
    }
  }

  /// Reads the files anew, whether they look changed or not.
  func reload() {
    let stamps = files.map(FileStamp.init(ofFileAt:))
    state.withLock { _ = load(stamps, &$0) }
  }

  private func load(_ stamps: [FileStamp?], _ state: inout State) -> Value {
    state.stamps = stamps
    do {
      state.value = try read()
      logger.notice("Read anew", metadata: ["what": "\(what)"])
    } catch {
      logger.failure("The changed \(what) can't be used; those from before stay in use", error)
    }
    return state.value
  }
}
#endif
