public import Foundation

/// The command line of a benchmark: options that all of them have, and its own. Each is taken out where it is asked
/// for, and comes into the help by that; what nobody asked for is a mistake.
public struct BenchmarkArguments {
  private let program: String
  private var rest: [String]
  private var help: [(option: String, meaning: String)] = []
  private let isHelpWanted: Bool

  public let json: Bool
  /// The repository that the figures are put into; nil for none.
  public let root: URL?
  public let check: Bool
  public let compiler: String

  init(_ program: String, _ arguments: [String]) throws {
    (self.program, rest) = (program, arguments)
    var common = rest
    (isHelpWanted, json, check) = (common.take("--help"), common.take("--json"), common.take("--check"))
    root = try common.value("--write").map { URL(filePath: $0, directoryHint: .isDirectory) }
    compiler = try common.value("--compiler") ?? "Swift"
    rest = common
  }

  /// A whole number.
  public mutating func number(
    _ option: String, _ usual: Int, in range: ClosedRange<Int> = 1...1_000_000, _ meaning: String
  ) throws -> Int {
    help.append(("\(option) N", "\(meaning) (\(usual))"))
    guard let text = try rest.value(option) else { return usual }
    guard let number = Int(text), range.contains(number) else {
      throw UsageError(message: "\(option) takes a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  public mutating func text(_ option: String, of kind: String, _ meaning: String) throws -> String? {
    help.append(("\(option) \(kind)", meaning))
    return try rest.value(option)
  }

  public mutating func flag(_ option: String, _ meaning: String) -> Bool {
    help.append((option, meaning))
    return rest.take(option)
  }

  /// What only the program itself says to processes that it starts.
  public mutating func probe() throws -> String? { try rest.value("--probe") }

  /// To be called when all options were asked for. Throws for others; gives the help if that is what was wanted.
  func finish() throws -> String? {
    let lines =
      help + [
        ("--json", "all figures as JSON on standard output, instead of tables"),
        ("--write FOLDER", "put the figures into the repository in that folder"),
        ("--check", "end with status 1 if a goal that must be reached isn't"),
        ("--compiler TEXT", "what compiled this, for the line about the machine"),
      ]
    let usage = (["Usage: \(program) [options]; Scripts/bench.sh builds and runs it."] + lines.map(Self.line)).joined(
      separator: "\n")
    if isHelpWanted { return usage }
    if let unknown = rest.first { throw UsageError(message: "There is no option \(unknown)\n\(usage)") }
    return nil
  }

  private static func line(_ option: String, _ meaning: String) -> String {
    "  \(option)\(String(repeating: " ", count: max(18 - option.count, 1)))\(meaning)"
  }
}

extension [String] {
  fileprivate mutating func take(_ option: String) -> Bool {
    guard let place = firstIndex(of: option) else { return false }
    remove(at: place)
    return true
  }

  fileprivate mutating func value(_ option: String) throws -> String? {
    guard let place = firstIndex(of: option) else { return nil }
    guard place + 1 < count else { throw UsageError(message: "\(option) needs a value") }
    defer { removeSubrange(place...place + 1) }
    return self[place + 1]
  }
}
