#if Cloud
import Foundation
import KeepsakePlatform
import KeepsakeReplication
import Synchronization

/// A process of the demo: started from this executable, communicating in lines, and certain to end with the demo unless
/// `leaveRunning` is called.
final class ChildProcess {
  enum Failure: Error, CustomStringConvertible {
    case noExecutable
    case ended(String)
    case silent(String, seconds: Int)
    case interrupted

    var description: String {
      switch self {
      case .noExecutable: "The demo can't find its own executable."
      case .ended(let name): "The process of \(name) ended before it responded; see its output above."
      case .silent(let name, let seconds): "\(name) did not respond within \(CountText.of(seconds, "second"))."
      case .interrupted: "The demo was interrupted by a signal."
      }
    }
  }

  private static let caught = Mutex<Int32?>(nil)

  /// The signal that stopped the demo.
  static var interruption: Int32? { caught.withLock { $0 } }

  /// Ends all waiting for children, both current and future.
  static func interrupt(_ signal: Int32) { caught.withLock { $0 = signal } }

  let name: String
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var received = Data()
  private var endsWithDemo = true

  init(name: String, arguments: [String]) throws {
    guard let executable = Bundle.main.executableURL else { throw Failure.noExecutable }
    self.name = name
    process.executableURL = executable
    process.arguments = arguments
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    // This process's copy of the child's end: unless it is closed, the end of the child's output would never be
    // noticed.
    try output.fileHandleForWriting.close()
  }

  deinit { if endsWithDemo { kill() } }

  var processIdentifier: Int32 { process.processIdentifier }

  /// Lets the process continue after the demo.
  func leaveRunning() { endsWithDemo = false }

  func write(line: Data) throws {
    try input.fileHandleForWriting.write(contentsOf: line + Data([UInt8(ascii: "\n")]))
  }

  /// Returns the next line that the child prints; nil at the end of its output. Throws `Failure`.
  func readLine(withinSeconds seconds: Int) throws -> Data? {
    let descriptor = output.fileHandleForReading.fileDescriptor
    let deadline = ContinuousClock.now + .seconds(seconds)
    while true {
      guard Self.interruption == nil else { throw Failure.interrupted }
      if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
        let line = Data(received[received.startIndex..<end])
        received = Data(received[(end + 1)...])
        return line
      }
      var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let ready = poll(&state, 1, 100)
      if ready > 0 {
        let more = output.fileHandleForReading.availableData
        if more.isEmpty { return nil }
        received.append(more)
      } else if ContinuousClock.now > deadline {
        throw Failure.silent(name, seconds: seconds)
      }
    }
  }

  /// Waits until the child ends by itself, and returns the exit status. What it prints is ignored. Throws `Failure`.
  func finish(withinSeconds seconds: Int) throws -> Int32 {
    while try readLine(withinSeconds: seconds) != nil {}
    process.waitUntilExit()
    return process.terminationStatus
  }

  /// Sends SIGKILL: no chance to clean up, as with a dead battery.
  func kill() {
    guard process.isRunning else { return }
    signal(SIGKILL)
  }

  /// Sends SIGTERM, and returns the exit status.
  func terminate() -> Int32 {
    if process.isRunning { signal(SIGTERM) }
    return process.terminationStatus
  }

  private func signal(_ number: Int32) {
    _ = SystemCall.kill(process.processIdentifier, number)
    process.waitUntilExit()
  }
}
#endif
