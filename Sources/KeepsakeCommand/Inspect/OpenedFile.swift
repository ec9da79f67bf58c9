#if Cloud
import Foundation

/// What is in a file below compression and the encodings of text; of an ordinary file, the file itself.
struct OpenedFile {
  /// Deeper ones were made to be deep.
  private static let maximumWrappings = 4

  /// The path as it was given.
  let path: String
  var bytes: Data
  /// Outermost first.
  var wrappings: [Wrapping] = []
  /// The name of what is in it, whose extension counts.
  private(set) var name: String

  /// Opens as far as there is something to open. Costs nothing for an ordinary file.
  ///
  /// - Parameters:
  ///   - opens: False to take the file as it is.
  ///   - maximumBytes: The most bytes that are taken from a wrapping.
  /// - Throws: `CommandFailure` for what is damaged, too large, or wrapped too often.
  init(_ data: Data, at path: String, opens: Bool = true, maximumBytes: Int = Wrapping.maximumBytes) throws {
    (self.path, name, bytes) = (path, path, data)
    func opened() throws -> (wrapping: Wrapping, bytes: Data)? {
      try described { try Wrapping.opened(bytes, named: name, maximumBytes: maximumBytes) }
    }
    while opens, let (wrapping, inner) = try opened() {
      guard wrappings.count < Self.maximumWrappings else {
        let list = wrappings.map(\.rawValue).joined(separator: ", ")
        throw CommandFailure(
          .data, "\(path) is wrapped more than \(Self.maximumWrappings) times (\(list))",
          next: "open the outer ones first, and name what is in them")
      }
      wrappings.append(wrapping)
      (bytes, name) = (inner, Wrapping.innerName(name))
    }
  }

  /// Runs `body`. A failure says what was opened before; of an ordinary file, it stays as it is.
  func naming<Result>(_ body: () throws -> Result) throws -> Result {
    wrappings.isEmpty ? try body() : try described(body)
  }

  private func described<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch  where !(error is CommandFailure) || (error as? CommandFailure)?.kind == .data {
      var failure = CommandFailure(error)
      for start in ["\(name) is ", "\(name): ", "it is "] where failure.message.hasPrefix(start) {
        failure.message.removeFirst(start.count)
      }
      let shown = path == InputKind.standard ? "standard input" : path
      failure.message = "\(shown) is \(wrappings.opening)\(failure.message)"
      throw failure
    }
  }
}
#endif
