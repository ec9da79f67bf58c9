#if Cloud
import Configuration
import Foundation
import KeepsakeReplication
import KeepsakeServer
import KeepsakeStore

/// The settings of `keepsake serve` as they were given: by flags, then by the environment, then by a file; the first
/// source that has a setting counts.
struct ServeSettings: Sendable {
  /// A setting with where it comes from.
  struct Resolved: Sendable {
    enum Value: Hashable, Sendable {
      case text(String)
      case number(Int)
      case flag(Bool)
      case list([String])

      var text: String {
        switch self {
        case .text(let text): text
        case .number(let number): String(number)
        case .flag(let isSet): String(isSet)
        case .list(let words): words.joined(separator: ",")
        }
      }
    }
    var setting: ServeSetting
    /// Nil if no source has it, and there is no default.
    var value: Value?
    /// Such as `flag --port`, `environment KEEPSAKE_PORT`, `file /etc/keepsake.json`, `default`.
    var source: String

    /// The value for people; a secret is left out.
    var shown: String {
      guard let value else { return "" }
      return setting.isSecret ? "<redacted>" : value.text
    }
  }
  private struct Source {
    var snapshot: any ConfigSnapshot
    var name: @Sendable (ServeSetting) -> String
  }
  /// A file of settings has some hundred bytes.
  private static let maximumFileBytes = 256 * 1_024

  /// All settings, in their order in the table.
  let resolved: [Resolved]

  /// - Parameters:
  ///   - flags: What the command line has.
  ///   - environment: All variables of the process.
  ///   - file: The file that a flag names; nil for the one that the environment names, if it does.
  /// - Throws: `CommandFailure` for a value that isn't one, a field of the file that is no setting, and a file that
  ///   can't be read.
  init(flags: [String: ConfigValue], environment: [String: String], file: String?) throws {
    let variables = environment.filter { $0.key.hasPrefix(ServeSetting.prefix) }
    let stripped = Dictionary(
      uniqueKeysWithValues: variables.map { (String($0.key.dropFirst(ServeSetting.prefix.count)), $0.value) })
    let typed = Dictionary(uniqueKeysWithValues: flags.map { (AbsoluteConfigKey([$0.key]), $0.value) })
    var sources = [
      Source(snapshot: InMemoryProvider(name: "flags", values: typed).snapshot()) { "flag \($0.flag)" },
      Source(snapshot: EnvironmentVariablesProvider(environmentVariables: stripped).snapshot()) {
        "environment \($0.variable)"
      },
    ]
    if let path = file ?? environment[ServeSetting.fileVariable] {
      sources.append(Source(snapshot: try Self.read(path)) { _ in "file \(path)" })
    }
    resolved = try ServeSetting.all.map { try Self.resolve($0, in: sources) }
  }

  /// Variables with the prefix of settings that aren't any: most likely mistyped.
  static func unknownVariables(in environment: [String: String]) -> [String] {
    let known = Set(ServeSetting.all.map(\.variable) + [ServeSetting.fileVariable])
    return environment.keys.filter { $0.hasPrefix(ServeSetting.prefix) && !known.contains($0) }.sorted()
  }

  // MARK: Values

  subscript(name: String) -> Resolved.Value? { resolved.first { $0.setting.name == name }?.value }

  func text(_ name: String) -> String? {
    if case .text(let text)? = self[name] { text } else { nil }
  }

  func number(_ name: String) -> Int? {
    if case .number(let number)? = self[name] { number } else { nil }
  }

  func isSet(_ name: String) -> Bool { self[name] == .flag(true) }

  func list(_ name: String) -> [String] {
    if case .list(let words)? = self[name] { words } else { [] }
  }

  // MARK: Reading

  private static func read(_ path: String) throws -> any ConfigSnapshot {
    guard let bytes = try AtomicFile.read(URL(fileURLWithPath: path), maximumBytes: maximumFileBytes) else {
      throw CommandFailure(.noInput, "there is no file \(path)", next: "name a file of settings after --config")
    }
    let fields: [String: Any]
    do {
      guard let object = try JSONSerialization.jsonObject(with: bytes) as? [String: Any] else {
        throw CommandFailure(.data, "\(path) isn't a JSON object", next: #"write settings as {"port": 8080}"#)
      }
      fields = object
    } catch let error as CommandFailure {
      throw error
    } catch {
      throw CommandFailure(.data, "\(path) isn't JSON: \(ErrorReason.text(error))")
    }
    for name in fields.keys.sorted() where ServeSetting.named(name) == nil {
      throw CommandFailure(
        .usage, "\(path) has \"\(name.prefix(80))\", which is no setting", next: "use keepsake serve --help to see all")
    }
    for (name, value) in fields where value is NSNull {
      throw CommandFailure(.usage, "\(path) has \"\(name)\" without a value", next: "leave the setting out")
    }
    do {
      return try JSONSnapshot(data: bytes.bytes, providerName: path, parsingOptions: .default)
    } catch {
      throw CommandFailure(.usage, "\(path) can't be used: \(error)")
    }
  }

  private static func resolve(_ setting: ServeSetting, in sources: [Source]) throws -> Resolved {
    for source in sources {
      let name = source.name(setting)
      if let value = try value(of: setting, in: source.snapshot, name) {
        return Resolved(setting: setting, value: try checked(value, setting, name), source: name)
      }
    }
    let standard: Resolved.Value? = setting.standard.map { text in
      switch setting.kind {
      case .number: Int(text).map { .number($0) } ?? .text(text)
      case .flag: .flag(text == "true")
      default: .text(text)
      }
    }
    return Resolved(setting: setting, value: standard, source: standard == nil ? "not set" : "default")
  }

  private static func value(
    of setting: ServeSetting, in snapshot: any ConfigSnapshot, _ source: String
  ) throws -> Resolved.Value? {
    let key = AbsoluteConfigKey([setting.name])
    let types: [ConfigType] =
      switch setting.kind {
      case .text, .choice: [.string]
      case .number: [.int]
      case .flag: [.bool]
      // In a file, a number of bytes may be a number.
      case .size: [.string, .int]
      // In a file, one word may stand without brackets.
      case .list, .issuers, .webhooks: [.stringArray, .string]
      }
    for type in types {
      let found: ConfigValue?
      do {
        found = try snapshot.value(forKey: key, type: type).value
      } catch {
        // It may be of the next type.
        continue
      }
      guard let found else { return nil }
      switch found.content {
      case .string(let text): return setting.isList ? .list([text]) : .text(text)
      case .int(let number): return setting.isSize ? .text(String(number)) : .number(number)
      case .bool(let isSet): return .flag(isSet)
      case .stringArray(let words): return .list(words)
      default: continue
      }
    }
    throw failure(setting, source)
  }

  private static func checked(
    _ value: Resolved.Value, _ setting: ServeSetting, _ source: String
  ) throws -> Resolved.Value {
    switch (setting.kind, value) {
    case (.number(let range), .number(let number)) where range.contains(number): return value
    case (.size, .text(let text)) where SizeLimit(argument: text) != nil: return value
    case (.choice(let choices), .text(let text)) where choices.contains(text): return value
    case (.text, .text(let text)) where !text.isEmpty: return value
    case (.flag, .flag): return value
    case (.list, .list(let words)):
      let words = words.map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
      if !words.isEmpty { return .list(words) }
    case (.issuers, .list(let issuers)):
      try check(issuers, setting, source) { _ = try IdentityIssuer($0) }
      if !issuers.isEmpty { return value }
    case (.webhooks, .list(let webhooks)):
      try check(webhooks, setting, source) { _ = try WebhookEndpoint($0) }
      if !webhooks.isEmpty { return value }
    default: break
    }
    throw failure(setting, source)
  }

  private static func check(
    _ texts: [String], _ setting: ServeSetting, _ source: String, _ read: (String) throws -> Void
  ) throws {
    for text in texts {
      do {
        try read(text)
      } catch {
        let reason = ErrorReason.text(error)
        // A failure's message is shown with a full stop of its own.
        let shown = reason.hasSuffix(".") ? String(reason.dropLast()) : reason
        throw CommandFailure(.usage, "the setting \(setting.name) (\(source)): \(shown)")
      }
    }
  }

  /// Doesn't repeat the value, which may be a secret.
  private static func failure(_ setting: ServeSetting, _ source: String) -> CommandFailure {
    let expected =
      switch setting.kind {
      case .text: "a text that isn't empty"
      case .number(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
      case .flag: "true or false"
      case .size: "a number of bytes, a number with K, M, G or T, or none"
      case .list: "words separated by commas"
      case .issuers, .webhooks: "a name, and then key=value for each further thing"
      case .choice(let choices): "one of \(choices.joined(separator: ", "))"
      }
    return CommandFailure(.usage, "the setting \(setting.name) (\(source)) takes \(expected)")
  }
}

extension ServeSetting {
  fileprivate var isList: Bool {
    switch kind {
    case .list, .issuers, .webhooks: true
    default: false
    }
  }
  fileprivate var isSize: Bool { if case .size = kind { true } else { false } }
}
#endif
