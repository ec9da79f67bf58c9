#if Cloud
import FlowerGarden
import Foundation

/// The story's handle for one device: a process of its own with a store of its own.
final class DemoDevice {
  struct Refused: Error, CustomStringConvertible {
    var device: String
    var why: String
    var description: String { "\(device): \(why)" }
  }

  let name: String
  let store: URL
  private var process: ChildProcess

  init(name: String, store: URL) throws {
    self.name = name
    self.store = store
    process = try Self.start(name: name, store: store)
  }

  private static func start(name: String, store: URL) throws -> ChildProcess {
    try ChildProcess(
      name: name, arguments: ["demo-device", "--name", name, "--store", store.path(percentEncoded: false)])
  }

  /// Sends a request and returns the reply, refusals included.
  func ask(_ request: DemoRequest, withinSeconds seconds: Int = 60) throws -> DemoReply {
    try process.write(line: JSONEncoder().encode(request))
    guard let line = try process.readLine(withinSeconds: seconds) else { throw ChildProcess.Failure.ended(name) }
    return try JSONDecoder().decode(DemoReply.self, from: line)
  }

  /// Sends a request that must not be refused.
  @discardableResult
  func send(_ request: DemoRequest, withinSeconds seconds: Int = 60) throws -> DemoReply {
    let reply = try ask(request, withinSeconds: seconds)
    if let why = reply.refused { throw Refused(device: name, why: why) }
    return reply
  }

  func readBack() throws -> GardenView {
    guard let view = try send(.readBack).view else { throw Refused(device: name, why: "no view came back") }
    return view
  }

  func readStudio() throws -> StudioView {
    guard let view = try send(.readStudio).studio else { throw Refused(device: name, why: "no view came back") }
    return view
  }

  /// Waits for the condition; returns false if the time runs out first.
  func wait(for condition: DemoCondition, seconds: Double = 20) throws -> Bool {
    try send(.waitFor(condition, seconds: seconds), withinSeconds: Int(seconds) + 30).cameTrue == true
  }

  /// Makes the device save without pause, kills it in the middle after about this time, and returns the last number
  /// that it acknowledged.
  func killWhileSaving(afterMilliseconds delay: Int) throws -> Int {
    try process.write(line: JSONEncoder().encode(DemoRequest.saveWithoutPause))
    var last = 0
    let end = ContinuousClock.now + .milliseconds(delay)
    // Wait for at least one acknowledgement, so that there is a promise to check.
    while last == 0 || ContinuousClock.now < end {
      guard let line = try process.readLine(withinSeconds: 60) else { throw ChildProcess.Failure.ended(name) }
      let reply = try JSONDecoder().decode(DemoReply.self, from: line)
      if let why = reply.refused { throw Refused(device: name, why: why) }
      last = reply.acknowledged ?? last
    }
    process.kill()
    // What was printed before the kill was acknowledged, too. The last line may be cut off: then its number was not.
    while let line = try process.readLine(withinSeconds: 5) {
      guard let reply = try? JSONDecoder().decode(DemoReply.self, from: line) else { break }
      last = reply.acknowledged ?? last
    }
    return last
  }

  func restart() throws {
    process.kill()
    process = try Self.start(name: name, store: store)
  }

  /// Closes the store properly and ends the process.
  func quit() throws {
    try send(.quit)
    _ = try process.readLine(withinSeconds: 30)
    process.kill()
  }
}
#endif
