import Foundation
import Keepsake
import Synchronization

/// A world's state of a device, shared by all `TestDevice` objects for it.
final class DeviceState: Sendable {
  private struct Current {
    var folder: URL
    var game: GameData?
    var link: DeviceLink?
  }

  let name: String
  let line: DeviceLine
  private let current: Mutex<Current>
  /// Held while the device is opened, closed, killed or copied.
  private let operation = NSLock()
  /// Killed games are closed here, because closing waits for a disk and for the cloud's last request.
  private static let graves = DispatchQueue(label: "keepsake.testing.graves", attributes: .concurrent)

  init(name: String, folder: URL, clock: TestClock) {
    self.name = name
    line = DeviceLine(clock: clock)
    current = Mutex(Current(folder: folder))
  }

  var folder: URL { current.withLock { $0.folder } }
  var game: GameData? { current.withLock { $0.game } }
  var link: DeviceLink? { current.withLock { $0.link } }

  func alone<Value>(_ body: () throws -> Value) rethrows -> Value { try operation.withLock(body) }

  func began(_ game: GameData, over link: DeviceLink) {
    current.withLock {
      $0.game = game
      $0.link = link
    }
  }

  func died(goingOnIn folder: URL) {
    let (dead, grave) = current.withLock { current in
      defer { current = Current(folder: folder) }
      return (current.game, current.folder)
    }
    Self.graves.async {
      // Errors of a killed game are ignored.
      try? dead?.close()
      try? FileManager.default.removeItem(at: grave)
    }
  }

  func moved(to folder: URL) { current.withLock { $0 = Current(folder: folder) } }
}
