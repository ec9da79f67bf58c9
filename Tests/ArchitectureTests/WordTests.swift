import Foundation
import TestSupport
import Testing

/// One word for one thing: CONTRIBUTING's glossary lists the words, and those that are no longer used.
struct WordTests {
  /// Public names in which a word of the last column means something else.
  static let exceptions: [String: String] = [
    "place(_:at:)": "a verb: of a tracked file, written where the game wants it",
    "place(_:in:)": "a verb: of a tracked file, written where the game wants it",
    "isDeferred(_:)": "of an archive: the field is written among the references, behind the objects",
    "noteUnowned(_:)": "for generated code: the reader keeps an object in mind that nothing else holds",
  ]

  /// The words in italics in the glossary's last column, with the word to use instead.
  static func outdatedWords(in document: String) -> [String: String] {
    var words: [String: String] = [:]
    var isInTable = false
    for line in document.components(separatedBy: "\n") {
      let cells = line.split(separator: "|", omittingEmptySubsequences: false).map {
        $0.trimmingCharacters(in: .whitespaces)
      }
      guard cells.count == 5 else {
        isInTable = false
        continue
      }
      if cells[3] == "no longer" { isInTable = true }
      guard isInTable else { continue }
      for match in cells[3].matches(of: /\*([a-z]+)\*/) { words[String(match.1)] = cells[1] }
    }
    return words
  }

  static func glossary() throws -> [String: String] {
    outdatedWords(in: try String(contentsOf: Repository.root.appending(path: "CONTRIBUTING.md"), encoding: .utf8))
  }

  @Test("Public names use none of the words that the glossary lists as no longer used")
  func publicNames() throws {
    let outdated = try Self.glossary()
    #expect(outdated.count > 30)
    for declaration in try PublicDeclarationScanner.ofLibraries() where Self.exceptions[declaration.signature] == nil {
      let names = [declaration.name] + (declaration.labels ?? [])
      for word in names.flatMap(SwiftText.words) {
        guard let instead = outdated[word] else { continue }
        let place = "\(declaration.file):\(declaration.line)"
        Issue.record("\(place): \(declaration.signature) says \"\(word)\"; the glossary's word is \"\(instead)\"")
      }
    }
  }

  @Test("Each exception is still needed")
  func exceptionsAreNeeded() throws {
    let outdated = try Self.glossary()
    let names = Set(try PublicDeclarationScanner.ofLibraries().map(\.signature))
    for name in Self.exceptions.keys.sorted() {
      #expect(names.contains(name), "there is no public \(name) any more")
      #expect(SwiftText.words(of: name).contains { outdated[$0] != nil }, "\(name) has no word that is no longer used")
    }
  }

  @Test("No word that the glossary recommends is listed there as no longer used")
  func glossaryAgreesWithItself() throws {
    let outdated = try Self.glossary()
    for word in Set(outdated.values).flatMap({ $0.split { !$0.isLetter } }) {
      #expect(outdated[String(word)] == nil, "\"\(word)\" is both used and listed as no longer used")
    }
  }

  @Test("A name is split into its words")
  func words() {
    #expect(SwiftText.words(of: "hasMuchToSay") == ["has", "much", "to", "say"])
    #expect(SwiftText.words(of: "XMLReader2D") == ["xml", "reader", "d"])
    #expect(SwiftText.words(of: "urlOfID") == ["url", "of", "id"])
    #expect(SwiftText.words(of: "==").isEmpty)
  }

  @Test("The glossary's last column is read from its table alone")
  func table() {
    let document = """
      | word | means | no longer |
      |---|---|---|
      | fetch | ask | *hear*, *heard*, `hears` |

      | word | means | example |
      | sync | both | *send* |
      """
    #expect(Self.outdatedWords(in: document) == ["hear": "fetch", "heard": "fetch"])
  }
}
