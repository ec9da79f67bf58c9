public import Foundation
import KeepsakeInterchange

/// Importing the settings of an older game from the property list in which `UserDefaults` keeps them: on Apple's
/// systems in the app container's `Library/Preferences`, named after the bundle identifier.
extension Preferences {
  /// Imports settings by rules.
  ///
  /// ```swift
  /// let report = try game.preferences.importDefaults(from: bytes, rules: [
  ///   .init("SoundVolume", as: .volume),
  ///   .init("HardMode", as: .difficulty) { $0.bool == true ? .hard : .normal },
  /// ])
  /// for unfit in report.unfit { log("\(unfit.name): \(unfit.reason)") }
  /// ```
  ///
  /// A preference that already has a value, set on this device or another, is kept unless `isReplacing`, so a repeated
  /// import changes nothing. But it would restore a value that the player has since reset to its default: import once,
  /// at the first start of the new version. Imported values become durable in the same way as values that are set:
  /// within a frame, or after `flush`.
  ///
  /// - Parameters:
  ///   - data: The property list.
  ///   - rules: The values to import.
  ///   - isReplacing: Whether to replace existing values.
  /// - Returns: What was imported, and what doesn't fit.
  /// - Throws: `PropertyListError` for bytes that aren't a property list with a dictionary at the top; `GameDataError`
  ///   with `closed`.
  @discardableResult
  public func importDefaults(from data: Data, rules: [DefaultsRule], isReplacing: Bool = false) throws -> DefaultsReport
  {
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

  /// Imports every setting for which `name` returns the name of a preference.
  ///
  ///     try game.preferences.importDefaults(from: bytes) { $0.hasPrefix("game.") ? String($0.dropFirst(5)) : nil }
  ///
  /// They become preferences of this device. Booleans, numbers, text, dates and data keep their kind, and so do lists
  /// and dictionaries of such values of one kind; a key reads a whole number as any number type that can hold it. Use
  /// rules for everything else, and for synced preferences. `UserDefaults` also contains values of the system: return
  /// nil for those.
  ///
  /// - Parameters:
  ///   - data: The property list.
  ///   - isReplacing: Whether to replace existing values.
  ///   - name: Returns the name of the preference for a key of the property list; nil for a key not to import.
  /// - Returns: What was imported, and what doesn't fit.
  /// - Throws: As `importDefaults(from:rules:isReplacing:)`.
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

  /// Imports by rules what an older game has in memory: its values in the key-value store of iCloud, for example.
  ///
  /// ```swift
  /// let values = NSUbiquitousKeyValueStore.default.dictionaryRepresentation
  /// let report = try game.preferences.importDefaults(values, rules: [
  ///   .init("SoundVolume", as: .volume),
  ///   .init("BestLevel", as: .bestLevel, in: game.progress),
  /// ])
  /// ```
  ///
  /// That store may still be empty when the game starts for the first time on a device, and fill later: import again
  /// when it reports a change from outside.
  ///
  /// - Parameters:
  ///   - values: Values as property lists have them: Booleans, numbers, text, dates, data, and lists and dictionaries
  ///     of these.
  ///   - rules: The values to import.
  ///   - isReplacing: Whether to replace existing preferences.
  /// - Returns: What was imported, and what doesn't fit.
  /// - Throws: As `importDefaults(from:rules:isReplacing:)`; `PropertyListError` for a value that no property list has.
  @discardableResult
  public func importDefaults(
    _ values: [String: Any], rules: [DefaultsRule], isReplacing: Bool = false
  ) throws -> DefaultsReport {
    for (name, value) in values.sorted(by: { $0.key < $1.key })
    where !PropertyListSerialization.propertyList(value, isValidFor: .binary) {
      throw PropertyListError(.mismatch, "\"\(name)\" is a \(type(of: value)), which no property list has")
    }
    let data = try PropertyListSerialization.data(fromPropertyList: values, format: .binary, options: 0)
    return try importDefaults(from: data, rules: rules, isReplacing: isReplacing)
  }

  /// Imports settings by rules from a file.
  ///
  /// - Parameters:
  ///   - url: The property list.
  ///   - rules: The values to import.
  ///   - isReplacing: Whether to replace existing values.
  /// - Returns: What was imported, and what doesn't fit.
  /// - Throws: As `importDefaults(from:rules:isReplacing:)`, and the error of reading the file.
  @discardableResult
  public func importDefaults(at url: URL, rules: [DefaultsRule], isReplacing: Bool = false) throws -> DefaultsReport {
    try importDefaults(from: Data(contentsOf: url), rules: rules, isReplacing: isReplacing)
  }

  /// Returns the entries in the file's order; of several under one key, only the last.
  private static func values(_ data: Data) throws -> [PropertyList.Entry] {
    guard let entries = try PropertyList(data, limits: .inProportion(to: data)).dictionary else {
      throw PropertyListError(
        .mismatch, "The property list has no dictionary at the top level: these are not settings of UserDefaults")
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
