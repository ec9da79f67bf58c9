import Foundation
import Keepsake
import TestSupport
import Testing

// The code of the article OldSaves, word for word: the last test compares the two.

@Archivable(subclasses: [OldBoss.self]) class OldHero {
  var name: String
  var level = 1
  var items: [OldItem] = []
  var position = SIMD2<Double>()
  weak var target: OldHero?

  init(name: String) { self.name = name }
}

@Archivable final class OldBoss: OldHero {
  var rage = 0
}

@Archivable struct OldItem: Equatable {
  var kind: OldKind
  var count = 1
}

@Archivable enum OldKind: Int {
  case sword = 1
  case shield
  case key
}

func oldHero(from file: Data) throws -> OldHero {
  try KeyedArchive.decode(
    OldHero.self, from: file, classes: ["GameObject": OldHero.self, "Boss": OldBoss.self, "Item": OldItem.self],
    keys: [
      "GameObject": [
        "name": "_name", "level": "_level", "items": "_items", "position": "_position", "target": "_target",
      ],
      "Item": ["kind": "_kind", "count": "_count"],
    ])
}

extension Slot<OldHero> { static let hero = Slot("hero") }
extension PreferenceKey<Bool> { static let hasOldData = PreferenceKey("took over old data", default: false) }
extension PreferenceKey<Double> { static let music = PreferenceKey("music", default: 0.8) }
extension Board { static let arcade = Board("arcade", order: .descending) }

func takeOver(save: Data, defaults: Data, scores: Data, into game: GameData) throws -> [String] {
  guard !game.preferences[.hasOldData] else { return [] }
  if try game.saves.load(.hero) == nil {
    try game.saves.capture(oldHero(from: save), to: .hero).wait()
  }
  let settings = try game.preferences.importDefaults(
    from: defaults,
    rules: [
      .init("MusicVolume", as: .music)
    ])
  let list = try game.scores.importScores(
    from: scores, to: .arcade, columns: .init(score: "points", player: "name", date: "date"))
  try game.preferences.set(true, for: .hasOldData)
  try game.preferences.flush()
  return settings.unfit.map(\.reason) + list.unfit.map(\.reason)
}

func importSaves(in folder: URL, into game: GameData) throws -> [String] {
  let files = try OlderSaveFiles(in: folder)
  let report = try game.saves.importOlderSaves(
    files.saves,
    to: { save in save.name.hasSuffix(".hero") ? Slot<OldHero>(String(save.name.dropLast(5))) : nil },
    decode: { save in try oldHero(from: save.bytes) })
  return files.unread.map(\.message) + report.unfit.map { "\($0.name): \($0.error)" }
}

/// Imports an older game's files as the article describes.
@Suite struct OldSavesArticleTests {
  private static let save: PropertyList = [
    "$version": 100_000, "$archiver": "NSKeyedArchiver", "$top": ["root": .uid(1)],
    "$objects": [
      "$null",
      [
        "_name": .uid(2), "_level": 7, "_items": .uid(3), "_target": .uid(6), "_position": .uid(8),
        "$class": .uid(10),
      ],  // 1
      "Ann", ["NS.objects": [.uid(4), .uid(5)], "$class": .uid(11)],  // 2, 3
      ["_kind": 3, "_count": 2, "$class": .uid(12)], ["_kind": 1, "_count": 1, "$class": .uid(12)],  // 4, 5
      [
        "_name": .uid(7), "_level": 9, "_items": .uid(0), "_target": .uid(1), "_position": .uid(0), "rage": 2.0,
        "$class": .uid(13),
      ],  // 6
      "Grim", ["NS.pointval": .uid(9), "NS.special": 1, "$class": .uid(14)], "{3, 4.5}",  // 7, 8, 9
      ["$classname": "GameObject", "$classes": ["GameObject", "NSObject"]],  // 10
      ["$classname": "NSMutableArray", "$classes": ["NSMutableArray", "NSArray", "NSObject"]],  // 11
      ["$classname": "Item", "$classes": ["Item", "NSObject"]],  // 12
      ["$classname": "Boss", "$classes": ["Boss", "GameObject", "NSObject"]],  // 13
      ["$classname": "NSValue", "$classes": ["NSValue", "NSObject"]],  // 14
    ],
  ]

  @Test("an old game's object, settings and scores are imported once, and values that don't fit are reported")
  func takesOver() throws {
    let device = try Device()
    let save = try Self.save.encoded(as: .binary)
    let defaults = try PropertyList.dictionary([.init("MusicVolume", 0.5), .init("Locale", "de_CH")]).encoded(as: .xml)
    let scores = try PropertyList.array([
      ["points": 900, "name": "Ada", "date": .date(Date(timeIntervalSince1970: 100))],
      ["points": "a lot", "name": "Eve"],
    ]).encoded(as: .xml)
    for start in 0..<3 {
      let game = try device.open()
      defer { end(game) }
      let told = try takeOver(save: save, defaults: defaults, scores: scores, into: game)
      #expect(told.count == (start == 0 ? 1 : 0))
      let hero = try #require(try game.saves.load(.hero))
      #expect(hero.name == "Ann" && hero.level == 7 && hero.position == SIMD2(3, 4.5))
      #expect(hero.items == [OldItem(kind: .key, count: 2), OldItem(kind: .sword, count: 1)])
      #expect(game.preferences[.music] == 0.5)
      #expect(try game.scores.top(9, of: .arcade).map(\.value.int) == [900])
    }
  }

  @Test("an old game's save in a folder is imported once, and what can't be read is reported each time")
  func folder() throws {
    let (folder, device) = (try TemporaryFolder(), try Device())
    try Self.save.encoded(as: .binary).write(to: folder.url.appendingPathComponent("hero.hero"))
    try Data("damaged".utf8).write(to: folder.url.appendingPathComponent("other.hero"))
    try Data().write(to: folder.url.appendingPathComponent("readme.txt"))
    for _ in 0..<3 {
      let game = try device.open()
      defer { end(game) }
      let messages = try importSaves(in: folder.url, into: game)
      #expect(messages.count == 1 && messages.allSatisfy { $0.hasPrefix("other.hero: ") })
      #expect(try game.saves.load(.hero)?.name == "Ann")
      #expect(try game.saves.history(of: .hero).count == 1)
    }
  }

  @Test("a cycle of references in an old save is decoded, and an object of a subclass keeps its class")
  func circle() throws {
    let hero = try oldHero(from: Self.save.encoded(as: .xml))
    // Only the save's own references kept the target alive, so the weak reference is nil.
    #expect(hero.target == nil)
    var list = try #require(Self.save.dictionary)
    list.removeAll { $0.key == "$top" }
    let both = PropertyList.dictionary(list + [.init("$top", ["root": .uid(1), "boss": .uid(6)])])
    let archive = try KeyedArchive(both)
    #expect(try archive.tree().objects.count == 4)
    let classes: [String: any Archivable.Type] = [
      "GameObject": OldHero.self, "Boss": OldBoss.self, "Item": OldItem.self,
    ]
    let keys = [
      "GameObject": ["name": "_name", "level": "_level", "target": "_target"],
      "Item": ["kind": "_kind", "count": "_count"],
    ]
    let boss = try archive.decode(OldHero.self, key: "boss", classes: classes, keys: keys)
    #expect((boss as? OldBoss)?.rage == 2 && boss.items.isEmpty)
  }

  @Test("the article shows the code that is tested here")
  func agrees() throws {
    let article = try String(
      contentsOf: Repository.root.appending(path: "Sources/Keepsake/Documentation.docc/OldSaves.md"), encoding: .utf8)
    let tested = try String(contentsOf: URL(filePath: #filePath), encoding: .utf8)
    let blocks = article.components(separatedBy: "```swift\n").dropFirst().compactMap {
      $0.components(separatedBy: "```").first
    }
    #expect(blocks.count == 5)
    // GameKit exists on Apple's systems only.
    for block in blocks where !block.hasPrefix("import GameKit") {
      #expect(tested.contains(block), "the article has code that isn't tested:\n\(block)")
    }
  }
}
