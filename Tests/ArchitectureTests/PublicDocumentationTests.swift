import Foundation
import TestSupport
import Testing

/// Every public name of the libraries has documentation.
struct PublicDocumentationTests {
  /// The requirements of protocols of the standard library and of Foundation, which are documented there.
  static let witnesses: Set<String> = [
    "==", "<", "hash(into:)", "id", "description", "debugDescription", "errorDescription", "customMirror",
    "init(from:)", "encode(to:)",
    "codingKey", "init(codingKey:)", "makeAsyncIterator()", "next()", "next(isolation:)", "Element", "Failure",
    "init(stringLiteral:)",
    "init(booleanLiteral:)", "init(integerLiteral:)", "init(floatLiteral:)", "init(arrayLiteral:)",
    "init(dictionaryLiteral:)",
  ]

  @Test("Every public declaration has a documentation comment directly above it")
  func documented() throws {
    let declarations = try PublicDeclarationScanner.ofLibraries()
    // Fewer would mean that the scanner misses some.
    #expect(declarations.count > 1_000)
    // A type that meets a documented requirement of one of our own protocols need not document it again.
    let requirements = Set(declarations.filter { $0.isRequirement && $0.isDocumented }.map(\.signature))
    for declaration in declarations where !declaration.isDocumented {
      let isWitness = Self.witnesses.contains(declaration.signature)
      let isRepeated = !declaration.isRequirement && requirements.contains(declaration.signature)
      let place = "\(declaration.file):\(declaration.line)"
      #expect(isWitness || isRepeated, "\(place): \(declaration.keyword) \(declaration.signature) has no documentation")
    }
  }

  @Test("The documentation of each public call has a block for every parameter, for its result and for its errors")
  func blocks() throws {
    var count = 0
    for declaration in try PublicDeclarationScanner.ofLibraries()
    where declaration.isDocumented && !declaration.isUnavailable && !Self.witnesses.contains(declaration.signature) {
      guard let call = declaration.call else { continue }
      count += 1
      let differences = DocumentationBlocks(declaration.documentation).differences(from: call)
      let place = "\(declaration.file):\(declaration.line): \(declaration.keyword) \(declaration.signature)"
      #expect(differences.isEmpty, "\(place): its documentation \(differences.joined(separator: ", "))")
    }
    // Fewer would mean that the scanner misses some.
    #expect(count > 370)
  }

  @Test("What a call takes, returns and throws is compared with the blocks of its documentation")
  func blocksAreCompared() {
    let source = """
      public struct Shelf {
        /// Puts a book on the shelf.
        ///
        /// - Parameters:
        ///   - book: The book,
        ///     which isn't copied.
        ///   - position: From 0.
        /// - Returns: Its number.
        /// - Throws: `ShelfError` if there is no room.
        @discardableResult
        public mutating func insert<Book: Printed>(_ book: Book, at position: Int = (1 + 2)) async throws
          -> Int
        {}
        /// Finds a book.
        ///
        /// - Parameter name: Its title.
        public func find(
          title name: String, in part: (Int, Int) -> Bool, _: Int
        ) throws(ShelfError) -> Book? where Book: Printed { nil }
        /// Empties the shelf.
        ///
        /// - Parameter all: Everything.
        /// - Returns: Nothing.
        /// - Throws: Nothing.
        public func empty() -> Void {}
        /// The number of a book.
        public subscript(book: Book) -> Int { 0 }
        /// Not for use.
        @available(*, unavailable, message: "use insert")
        public init(text: String) throws {}
      }
      """
    let found = PublicDeclarationScanner(file: "", text: source).declarations().compactMap { declaration in
      declaration.call.map {
        DocumentationBlocks(declaration.documentation).differences(from: $0) + (declaration.isUnavailable ? ["-"] : [])
      }
    }
    #expect(
      found == [
        [], ["doesn't describe part", "has no Returns", "has no Throws"],
        ["describes no parameter: all", "has a needless Returns", "has a needless Throws"],
        ["doesn't describe book", "has no Returns"], ["doesn't describe text", "has no Throws", "-"],
      ])
  }

  @Test("Every public error has a text for people: it is a LocalizedError")
  func errorTexts() throws {
    var count = 0
    for declaration in try PublicDeclarationScanner.ofLibraries()
    where ["struct", "enum", "class"].contains(declaration.keyword) {
      let text = try String(contentsOf: Repository.root.appending(path: declaration.file), encoding: .utf8)
      let line = text.components(separatedBy: "\n")[declaration.line - 1]
      guard let types = line.firstMatch(of: /:(?<types>[^{]*)\{/)?.types, types.contains(/\b(Localized)?Error\b/) else {
        continue
      }
      count += 1
      #expect(types.contains("LocalizedError"), "\(declaration.file):\(declaration.line): \(declaration.name)")
    }
    #expect(count == 9)
  }

  @Test("What only generated code calls for a type that doesn't fit is hidden from the documentation, and says so")
  func hidesUnfitFields() throws {
    let file = Repository.root.appending(path: "Sources/KeepsakeArchive/Format/UnfitFields.swift")
    let lines = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n")
    let overloads = lines.indices.filter { lines[$0].contains("@_disfavoredOverload") }
    #expect(overloads.count > 15)
    for index in overloads {
      #expect(lines[index - 1].contains("@_documentation(visibility: internal)"), "line \(index + 1)")
    }
    let summaries = lines.indices.filter { lines[$0].contains("/// Stands for") }
    for index in summaries {
      let summary = lines[index...].prefix { $0.contains("/// ") && !$0.contains("/// -") }.joined(separator: " ")
      #expect(summary.hasSuffix("For generated code."), "line \(index + 1)")
    }
  }

  @Test("The scanner finds each form of a public declaration, and whether it is documented")
  func scanner() {
    let source = """
      /// Documented.
      @available(
        *, deprecated,
        message: "use ) something else (")
      public func old<T: Equatable>(_ value: T, to other: T) {
        public_looking()
      }
      public enum Side {
        case left, right(_ by: Int, of: String)
        /// Documented.
        case none
        func hidden() {}
      }
      // public var commented = 1
      let text = "public var quoted = \\(name("public"))"
      extension Side {
        public static func + (left: Self, right: Self) -> Self { left }
        package var inner: Int { 1 }
        public private(set) var seen: Int
        @inlinable public init?(_ text: String) { return nil }
      }
      public protocol Shape {
        /// Documented.
        var area: Double { get }
        func draw(on canvas: Canvas)
      }
      """
    let found = PublicDeclarationScanner(file: "", text: source).declarations().map {
      "\($0.isDocumented ? "+" : "-")\($0.isRequirement ? "requirement " : "")\($0.keyword) \($0.signature)"
    }
    #expect(
      found == [
        "+func old(_:to:)", "-enum Side", "-case left", "-case right(_:of:)", "+case none", "-func +", "-var seen",
        "-init init(_:)",
        "-protocol Shape", "+requirement var area", "-requirement func draw(on:)",
      ])
  }
}
