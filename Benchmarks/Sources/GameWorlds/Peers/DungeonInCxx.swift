import CPeers
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The dungeon as C++ objects, encoded and decoded by C++.
final class DungeonInCxx {
  private let peer: DungeonPeer
  private let schema: [UInt8]
  private let dungeon: OpaquePointer

  private init(_ peer: DungeonPeer, schema: [UInt8], dungeon: OpaquePointer) {
    self.peer = peer
    self.schema = schema
    self.dungeon = dungeon
  }

  /// Nil if the peer lacks a function.
  init?(_ dungeon: Dungeon, peer: DungeonPeer, schema: [UInt8]) {
    var name = dungeon.name
    guard let addHero = peer.add_hero, let addItem = peer.add_item,
      let made = name.withUTF8({ text in
        text.withMemoryRebound(to: CChar.self) {
          peer.make?(Int64(dungeon.level), $0.baseAddress, $0.count, dungeon.heroes.count)
        }
      })
    else { return nil }
    self.peer = peer
    self.schema = schema
    self.dungeon = made
    for (hero, target) in zip(dungeon.heroes, dungeon.targets) {
      hero.name.withUTF8 { text in
        text.withMemoryRebound(to: CChar.self) {
          addHero(
            made, Int64(hero.type), $0.baseAddress, $0.count, hero.position.x, hero.position.y, Int64(hero.health),
            Int64(target))
        }
      }
      for item in hero.inventory { addItem(made, item.kind, Int64(item.count), item.durability) }
    }
  }

  deinit { peer.release?(dungeon) }

  /// Empty if the peer can't. The bytes are not copied.
  func encode() -> Data {
    var count = 0
    guard let bytes = peer.encode?(dungeon, schema, schema.count, &count) else { return Data() }
    return Data(bytesNoCopy: bytes, count: count, deallocator: .free)
  }

  /// Nil for bytes that it can't read.
  func decode(_ data: Data) -> DungeonInCxx? {
    let decoded = data.withUnsafeBytes {
      peer.decode?($0.bindMemory(to: UInt8.self).baseAddress, $0.count, schema, schema.count)
    }
    return decoded.flatMap { $0 }.map { DungeonInCxx(peer, schema: schema, dungeon: $0) }
  }

  func equals(_ other: DungeonInCxx) -> Bool { peer.equal?(dungeon, other.dungeon) ?? false }

  /// The peer in a library that was built apart, if there is one. It stays loaded.
  static func peer(inLibrary path: String) -> DungeonPeer? {
    guard let library = dlopen(path, RTLD_NOW | RTLD_LOCAL), let symbol = dlsym(library, "library_peer") else {
      return nil
    }
    typealias Entry = @convention(c) () -> UnsafePointer<DungeonPeer>?
    return unsafeBitCast(symbol, to: Entry.self)()?.pointee
  }
}
