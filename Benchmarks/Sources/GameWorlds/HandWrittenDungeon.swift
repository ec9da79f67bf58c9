import Foundation

/// The archive's layout (docs/FORMAT.md) for this one world, as one would write it by hand with unsafe pointers: fields
/// straight to memory, numbers of objects kept in the objects, the schema a constant. It leaves out what only a general
/// encoder needs.
struct HandWrittenDungeon {
  static let magic: [UInt8] = [0x8B, 0x4B, 0x45, 0x45, 0x50, 0x0D, 0x0A, 0x1A]
  static let headerBytes = 16
  static let trailerBytes = 16
  static let varintBytes = 9
  static let itemBytes = 3 * varintBytes
  static let leastItemBytes = 3
  /// A hero without name and items, or the end of the footer.
  static let margin = 8 * varintBytes + 8 + trailerBytes

  /// What stands in the footer before the lengths of the sections: the same for every dungeon.
  private(set) var schema: [UInt8] = []

  /// Takes the schema from an archive of the same dungeon. Nil if what this encoder would write is not that archive.
  init?(like archive: Data, of dungeon: Dungeon) {
    let bare = encode(dungeon)
    guard archive.count >= bare.count, bare.count > Self.headerBytes + Self.trailerBytes else { return nil }
    let footer = archive.withUnsafeBytes {
      Int(truncatingIfNeeded: $0.loadUnaligned(fromByteOffset: archive.count - Self.trailerBytes, as: UInt64.self))
    }
    guard footer >= Self.headerBytes, footer <= archive.count - Self.trailerBytes else { return nil }
    let all = [UInt8](archive)
    schema = Array(all[footer..<min(all.count, footer + archive.count - bare.count)])
    guard encode(dungeon) == archive else { return nil }
  }

  // MARK: Writing

  func encode(_ dungeon: Dungeon) -> Data {
    let heroes = dungeon.heroes
    let name = dungeon.name
    var output = RawOutput(
      capacity: heroes.count * 64 + schema.count + name.utf8.count + Self.headerBytes + Self.margin)
    Self.magic.withUnsafeBytes { output.put($0) }
    output.putFixed(UInt64(1))
    output.reserve(name.utf8.count + heroes.count * Self.varintBytes + Self.margin)
    output.putSigned(dungeon.level)
    output.put(name)
    output.put(heroes.count)
    var number: UInt32 = 0
    for hero in heroes {
      hero.number = number
      number += 1
      output.put(Int(number))
    }
    let root = output.count - Self.headerBytes

    var references = RawOutput(capacity: heroes.count * Self.varintBytes + Self.margin)
    for hero in heroes {
      let (name, position, inventory) = (hero.name, hero.position, hero.inventory)
      output.reserve(name.utf8.count + inventory.count * Self.itemBytes + Self.margin)
      output.putSigned(hero.type)
      output.put(name)
      output.putFixed(position.x)
      output.putFixed(position.y)
      output.putSigned(hero.health)
      inventory.withUnsafeBufferPointer { items in
        output.put(items.count)
        for item in items {
          output.putSigned(Int(item.kind))
          output.putSigned(item.count)
          output.put(item.durability)
        }
      }
      if let target = hero.target { references.put(Int(target.number) + 1) } else { references.put(0) }
    }
    let objects = output.count - Self.headerBytes - root

    output.reserve(references.count + schema.count + Self.margin)
    output.put(references.bytes)
    let referenceBytes = references.count
    references.release()
    let footer = output.count
    schema.withUnsafeBytes { output.put($0) }
    output.put(root)
    output.put(objects)
    output.put(referenceBytes)
    output.put(heroes.count)
    output.put(heroes.isEmpty ? 0 : 1)
    if !heroes.isEmpty {
      output.put(1)  // Hero is the second type of the schema.
      output.put(heroes.count)
      output.putFixed(UInt8(0))
      output.put(0)
    }
    output.putFixed(UInt64(footer))
    output.putFixed(XXH64.hash(output.bytes))
    return output.taken()
  }

  // MARK: Reading

  /// Nil for bytes that are no such archive.
  func decode(_ data: Data) -> Dungeon? {
    data.withUnsafeBytes { decode($0) }
  }

  private func decode(_ bytes: UnsafeRawBufferPointer) -> Dungeon? {
    let bodyEnd = bytes.count - Self.trailerBytes
    guard bodyEnd >= Self.headerBytes, bytes.starts(with: Self.magic),
      XXH64.hash(UnsafeRawBufferPointer(rebasing: bytes.dropLast(8)))
        == bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self),
      let footer = Int(exactly: bytes.loadUnaligned(fromByteOffset: bodyEnd, as: UInt64.self)), footer <= bodyEnd,
      bytes[footer..<bodyEnd].starts(with: schema), let start = bytes.baseAddress
    else { return nil }
    var input = RawInput(start + footer + schema.count, end: start + bodyEnd)
    guard input.left >= 5 else { return nil }
    let (root, objects, references) = (input.take(), input.take(), input.take())
    let all = footer - Self.headerBytes
    guard root >= 0, root <= all, objects >= 0, objects <= all - root, references == all - root - objects else {
      return nil
    }

    input = RawInput(start + Self.headerBytes, end: start + Self.headerBytes + root)
    let level = input.takeSigned()
    guard let name = input.takeText() else { return nil }
    let count = input.take()
    guard count >= 0, count <= input.left else { return nil }

    input = RawInput(start + Self.headerBytes + root, end: start + Self.headerBytes + root + objects)
    var heroes: [Hero] = []
    heroes.reserveCapacity(count)
    for _ in 0..<count {
      let type = input.takeSigned()
      guard let name = input.takeText() else { return nil }
      let position = SIMD2<Float>(input.takeFixed(Float.self), input.takeFixed(Float.self))
      let health = input.takeSigned()
      let items = input.take()
      guard items >= 0, items <= input.left / Self.leastItemBytes else { return nil }
      let inventory = [Item](unsafeUninitializedCapacity: items) { buffer, initialized in
        while initialized < items, input.left >= Self.leastItemBytes {
          let kind = Int32(truncatingIfNeeded: input.takeSigned())
          let count = input.takeSigned()
          (buffer.baseAddress.unsafelyUnwrapped + initialized).initialize(
            to: Item(kind: kind, count: count, durability: input.takeDouble()))
          initialized += 1
        }
      }
      guard inventory.count == items, input.left >= 0 else { return nil }
      heroes.append(Hero(type: type, name: name, position: position, health: health, inventory: inventory))
    }
    guard input.left == 0 else { return nil }

    input = RawInput(start + Self.headerBytes + root + objects, end: start + footer)
    for hero in heroes {
      guard input.left > 0 else { return nil }
      let reference = input.take()
      guard reference >= 0, reference <= count else { return nil }
      if reference > 0 { hero.target = heroes[reference - 1] }
    }
    return input.left == 0 ? Dungeon(level: level, name: name, heroes: heroes) : nil
  }
}
