import KeepsakeArchive

@Archivable final class Token: Hashable {
  let id: Int
  init(_ id: Int) { self.id = id }
  static func == (a: Token, b: Token) -> Bool { a.id == b.id }
  func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

@Archivable struct Tokens {
  var set: Set<Token> = []
  var counts: [Token: String] = [:]
}
