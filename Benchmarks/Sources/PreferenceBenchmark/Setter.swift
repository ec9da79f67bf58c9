import BenchmarkKit
import Foundation
import GRDB
import Keepsake
import Observation

extension PreferenceKey<Double> {
  static func level(_ number: Int) -> Self { PreferenceKey(Names.all[number], default: 0.5) }
}

/// The same names for everybody, made before any clock starts.
enum Names {
  static let all = (0..<20).map { "setting number \($0)" }
}

/// One way to keep settings, in a place of its own.
protocol Setter: AnyObject {
  func set(_ value: Double, _ number: Int) throws
  /// Returns when all is as durable as this way makes it.
  func flush() throws
  func value(_ number: Int) throws -> Double?
  func finish() throws
}

/// In the order of the table.
enum Way: String, CaseIterable {
  case keepsake, first, observed, defaults, defaultsFirst, synchronized, pool, queue

  var title: String {
    switch self {
    case .keepsake: "Keepsake"
    case .first: "Keepsake, the first set after a commit"
    case .observed: "Keepsake, settings that are observed"
    case .defaults: "UserDefaults on Linux"
    case .defaultsFirst: "UserDefaults on Linux, the first set after synchronize"
    case .synchronized: "UserDefaults on Linux, synchronize after each"
    case .pool: "GRDB, a write each (pool, not synced)"
    case .queue: "GRDB, a write each (queue, synced)"
    }
  }

  /// Sets of one batch, which takes some milliseconds of each way unless each set is to be the first, and batches.
  var size: (batch: Int, batches: Int) {
    switch self {
    case .keepsake, .observed: (5_000, 60)
    case .first, .defaultsFirst: (1, 60)
    case .defaults, .pool: (100, 30)
    case .synchronized, .queue: (5, 20)
    }
  }

  /// Whether everything is made durable before each batch.
  var isFirst: Bool { self == .first || self == .defaultsFirst }

  func setter(in folder: URL) throws -> any Setter {
    switch self {
    case .keepsake, .first: try KeepsakeSetter(folder.appending(path: "\(self)"), isObserved: false)
    case .observed: try KeepsakeSetter(folder.appending(path: "\(self)"), isObserved: true)
    case .defaults, .defaultsFirst: try DefaultsSetter(synchronizes: false)
    case .synchronized: try DefaultsSetter(synchronizes: true)
    case .pool: try DatabaseSetter(DatabasePool(path: folder.appending(path: "pool.sqlite").path))
    case .queue: try DatabaseSetter(DatabaseQueue(path: folder.appending(path: "queue.sqlite").path))
    }
  }
}

private final class KeepsakeSetter: Setter {
  private let game: GameData

  init(_ folder: URL, isObserved: Bool) throws {
    game = try GameData.open("benchmark", at: folder)
    // As a game does that shows its settings.
    let look = { [game] in for number in Names.all.indices { _ = game.preferences[.level(number)] } }
    // Whoever observes is told once, and from the first time on it has to be seen at each set whether somebody is
    // there.
    if isObserved { withObservationTracking(look, onChange: {}) } else { look() }
  }

  func set(_ value: Double, _ number: Int) { game.preferences[.level(number)] = value }
  func flush() throws { try game.preferences.flush() }
  func value(_ number: Int) -> Double? { game.preferences[.level(number)] }

  func finish() throws {
    try BenchmarkError.require(game.incidents.isEmpty, "Something was amiss with the data")
    try game.close()
  }
}

private final class DefaultsSetter: Setter {
  private let suite = "keepsake-benchmark-\(ProcessInfo.processInfo.processIdentifier)"
  private let defaults: UserDefaults
  private let synchronizes: Bool

  init(synchronizes: Bool) throws {
    guard let defaults = UserDefaults(suiteName: suite) else {
      throw BenchmarkError(message: "There are no UserDefaults")
    }
    (self.defaults, self.synchronizes) = (defaults, synchronizes)
  }

  func set(_ value: Double, _ number: Int) {
    defaults.set(value, forKey: Names.all[number])
    if synchronizes { defaults.synchronize() }
  }

  func flush() { defaults.synchronize() }
  func value(_ number: Int) -> Double? { defaults.double(forKey: Names.all[number]) }

  func finish() {
    defaults.removePersistentDomain(forName: suite)
    defaults.synchronize()
  }
}

private final class DatabaseSetter: Setter {
  private let database: any DatabaseWriter

  init(_ database: any DatabaseWriter) throws {
    self.database = database
    try database.write {
      try $0.execute(sql: "CREATE TABLE setting (name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID")
    }
  }

  func set(_ value: Double, _ number: Int) throws {
    try database.write { database in
      try database.cachedStatement(sql: "INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)")
        .execute(arguments: [Names.all[number], value])
    }
  }

  func flush() {}

  func value(_ number: Int) throws -> Double? {
    try database.read {
      try Double.fetchOne($0, sql: "SELECT value FROM setting WHERE name = ?", arguments: [Names.all[number]])
    }
  }

  func finish() throws { try database.close() }
}
