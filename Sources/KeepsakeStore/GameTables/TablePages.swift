import Foundation

/// The pages that belong to the tables of a database, found without SQLite, to determine whether damage is in a table
/// or elsewhere.
///
/// Follows SQLite's documented format: an inner page has as many children as it has cells, each cell beginning with the
/// child's number, and one more in its header. Overflow pages aren't followed; SQLite reports problems with them for
/// the page that they start from.
struct TablePages {
  private static let headerOfFile = 100

  private let file: RawFile
  private let pageSize: Int
  private(set) var pages: Set<Int> = []

  /// Nil if a tree can't be walked completely, or two trees share a page.
  init?(_ file: RawFile, roots: [Int]) {
    self.file = file
    pageSize = PageScanner.pageSize(of: file)
    for root in roots {
      guard walk(root) else { return nil }
    }
  }

  /// Returns the page's type, which is its first byte; nil if there is no such page.
  func kind(of page: Int) -> UInt8? {
    guard page > 0 else { return nil }
    return file.bytes(at: (page - 1) * pageSize + (page == 1 ? Self.headerOfFile : 0), count: 1)?.first
  }

  private mutating func walk(_ root: Int) -> Bool {
    // Tables have types 5 and 13; those without row ids are stored like indexes, with 2 and 10.
    guard let kind = kind(of: root), let leaf: UInt8 = [5: 13, 13: 13, 2: 10, 10: 10][kind] else { return false }
    let inner = leaf - 8
    var waiting = [root]
    while let page = waiting.popLast() {
      guard pages.insert(page).inserted, let kind = self.kind(of: page), kind == leaf || kind == inner else {
        return false
      }
      guard kind == inner else { continue }
      guard let bytes = file.bytes(at: (page - 1) * pageSize, count: pageSize) else { return false }
      let start = page == 1 ? Self.headerOfFile : 0
      let cells = bytes.half(at: start + 3)
      guard start + 12 + 2 * cells <= pageSize else { return false }
      waiting.append(Int(bytes.word(at: start + 8)))
      for cell in 0..<cells {
        let place = bytes.half(at: start + 12 + 2 * cell)
        guard place + 4 <= pageSize else { return false }
        waiting.append(Int(bytes.word(at: place)))
      }
    }
    return true
  }

  // MARK: Findings

  /// Returns whether all tables are intact despite the problems that SQLite's check found: it names pages, and none of
  /// them belongs to a table.
  func spares(_ problems: [String]) -> Bool { problems.allSatisfy(spares) }

  private func spares(_ problem: String) -> Bool {
    // Unused pages. If a table's page was lost among them, that is reported for the page that lost it.
    if problem.contains("freelist") || problem.hasPrefix("Freelist") {
      return named(in: problem).isDisjoint(with: pages)
    }
    let named = named(in: problem)
    guard !named.isEmpty, named.isDisjoint(with: pages) else { return false }
    // An unreachable page may have belonged to a table, unless its type is an index's.
    guard problem.contains("never used") else { return true }
    return named.allSatisfy { [2, 10].contains(kind(of: $0)) }
  }

  /// Returns the numbers after the word "page", and after "Tree", with which newer releases of SQLite name a root.
  private func named(in problem: String) -> Set<Int> {
    let words = problem.lowercased().split { !$0.isLetter && !$0.isNumber }
    return Set(zip(words, words.dropFirst()).compactMap { $0 == "page" || $0 == "tree" ? Int($1) : nil })
  }
}
