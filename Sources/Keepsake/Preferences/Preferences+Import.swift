public import Foundation
import KeepsakeInterchange

/// Settings of an older game, from the property list in which `UserDefaults` keeps them: on Apple's systems `Library/Preferences` in the app's
/// container, with the bundle's identifier as its name.
extension Preferences {
  /// Takes settings by rules: one for each that the game still has.
  ///
  ///     let report = try game.preferences.importDefaults(from: bytes, rules: [
  ///       .init("SoundVolume", as: .volume),
  ///       .init("HardMode", as: .difficulty) { $0.bool == true ? .hard : .normal },
  ///     ])
  ///     for unfit in report.unfit { log("\(unfit.name): \(unfit.reason)") }
  ///
  /// A preference that has a value already, set here or on another device, stays as it is unless `isReplacing`; so doing it again changes nothing. But what the player
  /// has taken back to its default meanwhile would be there again: do it once, at the first start of the new version. What was taken is kept as
  /// whatever is set: durable within a frame, or after `flush`.
  ///
  /// - Throws: `PropertyListError` for bytes that are no property list with a dictionary at the top; `GameDataError` with `closed`. What doesn't fit a
  ///   preference is in the report.
  @discardableResult
  public func importDefaults(from data: Data, rules: [DefaultsRule], isReplacing: Bool = false) throws -> DefaultsReport {
    let values = try Self.values(data)
    var report = DefaultsReport()
    for rule in rules {
      guard let value = values.last(where: { $0.key == rule.name })?.value else {
        report.missing.append(rule.name)
        continue
      }
      try note(rule.name, in: &report) { try rule.take(value, self, isReplacing) }
    }
    let asked = Set(rules.map(\.name))
    report.others = values.map(\.key).filter { !asked.contains($0) }
    return report
  }

  /// Takes every setting for which `name` gives the name of a preference.
  ///
  ///     try game.preferences.importDefaults(from: bytes) { $0.hasPrefix("game.") ? String($0.dropFirst(5)) : nil }
  ///
  /// They are preferences of this device. Truth values, numbers, texts, dates and data are what they are, and lists and dictionaries of such values of one kind, too; a
  /// key reads a whole number as any number that holds it. For everything else, and for synced ones, there are rules. `UserDefaults` also holds values of the
  /// system's: give nil for those.
  /// - Throws: As `importDefaults(from:rules:isReplacing:)` does.
  @discardableResult
  public func importDefaults(
    from data: Data, isReplacing: Bool = false, named name: (String) -> String?
  ) throws -> DefaultsReport {
    var report = DefaultsReport()
    let present = Set(names)
    for entry in try Self.values(data) {
      guard let name = name(entry.key) else {
        report.others.append(entry.key)
        continue
      }
      try note(entry.key, in: &report) {
        guard isReplacing || !present.contains(name.canonical) else { return .kept }
        try take(DefaultsValue.content(of: entry.value), named: name)
        return .taken
      }
    }
    return report
  }

  /// The same from a file. Also throws what reading it throws.
  @discardableResult
  public func importDefaults(at url: URL, rules: [DefaultsRule], isReplacing: Bool = false) throws -> DefaultsReport {
    try importDefaults(from: Data(contentsOf: url), rules: rules, isReplacing: isReplacing)
  }

  /// In the file's order; of two under one key the last.
  private static func values(_ data: Data) throws -> [PropertyList.Entry] {
    guard let entries = try PropertyList(data, limits: .inProportion(to: data)).dictionary else {
      throw PropertyListError(.mismatch, "The property list has no dictionary at the top: these are no settings of UserDefaults")
    }
    let last = Dictionary(entries.enumerated().map { ($1.key, $0) }, uniquingKeysWith: { $1 })
    return entries.enumerated().filter { last[$1.key] == $0 }.map(\.element)
  }

  private func note(_ name: String, in report: inout DefaultsReport, _ body: () throws -> DefaultsRule.Outcome) throws {
    do {
      switch try body() {
      case .taken: report.taken.append(name)
      case .kept: report.kept.append(name)
      }
    } catch let error as GameDataError where error.code == .closed {
      throw error
    } catch {
      report.unfit.append(.init(name: name, reason: "\(error)"))
    }
  }
}
