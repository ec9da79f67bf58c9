import Foundation
import Synchronization

/// One thing that a program asked of the disk, as far as it matters to what a power cut leaves.
///
/// Files are told by numbers, since a name may stand for one file and later for another.
enum DiskEvent: Sendable {
  case create(file: Int, name: String)
  case write(file: Int, offset: Int, bytes: Data)
  case truncate(file: Int, size: Int)
  /// The file's bytes and size are on the disk from here on; whether its name is, the folder decides.
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

/// All that happened to the files of one folder, in order.
struct DiskRecording: Sendable {
  /// What lay in the folder before, on the disk.
  var initial: [String: Data] = [:]
  var events: [DiskEvent] = []

  /// The name that each file had when it was made.
  var names: [Int: String] {
    var names: [Int: String] = [:]
    for (number, name) in initial.keys.sorted().enumerated() { names[number] = name }
    for case .create(let file, let name) in events { names[file] = name }
    return names
  }

  /// The same run on a disk that does nothing at the syncs that `isLost` picks: what a program would leave that forgot
  /// them.
  func without(_ isLost: (DiskEvent) -> Bool) -> DiskRecording {
    var copy = self
    // Kept as events that change nothing, so that the places of all others stay as they were noted.
    copy.events = events.map { $0.isSync && isLost($0) ? .truncate(file: -1, size: 0) : $0 }
    return copy
  }
}

/// Takes down what happens to a folder. Whoever does something to a file does it within `perform`, so that the order
/// written down is the order in which the system was called.
final class DiskRecorder: Sendable {
  private struct State {
    var recording: DiskRecording
    /// The file that each name stands for now.
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

  /// Calls the system, and notes the events if it succeeded.
  func perform(_ call: () -> Int32, events: () -> [DiskEvent]) -> Int32 {
    state.withLock { state in
      let result = call()
      if result == 0 { state.recording.events += events() }
      return result
    }
  }

  /// Opens a file by its name; notes that it was made if nobody knew it.
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
