import Foundation
import Synchronization

/// One operation that a program requested of the disk, as far as it affects what a power cut leaves.
///
/// Files are identified by numbers, since a name may refer to one file and later to another.
enum DiskEvent: Sendable {
  case create(file: Int, name: String)
  case write(file: Int, offset: Int, bytes: Data)
  case truncate(file: Int, size: Int)
  /// The file's bytes and size are on the disk from here on; its name is there once the folder is synced.
  case sync(file: Int)
  case delete(name: String)
  /// The folder's names are on the disk from here on.
  case syncFolder

  var isSync: Bool {
    switch self {
    case .sync, .syncFolder: true
    default: false
    }
  }
}

/// Everything that happened to the files of one folder, in order.
struct DiskRecording: Sendable {
  /// The files that were in the folder before, all of them durable.
  var initial: [String: Data] = [:]
  var events: [DiskEvent] = []

  /// The name that each file had when it was created.
  var names: [Int: String] {
    var names: [Int: String] = [:]
    for (number, name) in initial.keys.sorted().enumerated() { names[number] = name }
    for case .create(let file, let name) in events { names[file] = name }
    return names
  }

  /// The same run on a disk that ignores the syncs for which `isLost` is true: what a program would leave that forgot
  /// them.
  func without(_ isLost: (DiskEvent) -> Bool) -> DiskRecording {
    var copy = self
    // Kept as events that change nothing, so that the positions of all others remain as recorded.
    copy.events = events.map { $0.isSync && isLost($0) ? .truncate(file: -1, size: 0) : $0 }
    return copy
  }
}

/// Records what happens to a folder. Every operation on a file is made within `perform`, so that the recorded order is
/// the order of the system calls.
final class DiskRecorder: Sendable {
  private struct State {
    var recording: DiskRecording
    /// The file that each name refers to now.
    var files: [String: Int] = [:]
    var nextFile = 0
  }
  private let state: Mutex<State>

  init(initial: [String: Data] = [:]) {
    var state = State(recording: DiskRecording(initial: initial))
    for name in initial.keys.sorted() {
      state.files[name] = state.nextFile
      state.nextFile += 1
    }
    self.state = Mutex(state)
  }

  /// How many events there are so far.
  var count: Int { state.withLock { $0.recording.events.count } }

  var recording: DiskRecording { state.withLock { $0.recording } }

  /// Calls the system, and records the events if it succeeded.
  func perform(_ call: () -> Int32, events: () -> [DiskEvent]) -> Int32 {
    state.withLock { state in
      let result = call()
      if result == 0 { state.recording.events += events() }
      return result
    }
  }

  /// Opens a file by its name; records that it was created if it wasn't known.
  func open(_ name: String, _ call: () -> Int32) -> (result: Int32, file: Int) {
    state.withLock { state in
      let result = call()
      guard result == 0 else { return (result, -1) }
      if let file = state.files[name] { return (result, file) }
      let file = state.nextFile
      state.nextFile += 1
      state.files[name] = file
      state.recording.events.append(.create(file: file, name: name))
      return (result, file)
    }
  }

  func delete(_ name: String, syncsFolder: Bool, _ call: () -> Int32) -> Int32 {
    state.withLock { state in
      let result = call()
      guard result == 0 else { return result }
      if state.files.removeValue(forKey: name) != nil { state.recording.events.append(.delete(name: name)) }
      if syncsFolder { state.recording.events.append(.syncFolder) }
      return result
    }
  }
}
