import Foundation
import TestSupport
import Testing

@testable import Keepsake

/// Settings of a game from before it used `@Archivable`.
private struct Settings: Codable, Equatable {
  var volume = 0.5
  var names: [String: Set<String>] = ["pads": ["left", "right"]]
  var last: Date?
}

@Suite struct CodableFilesTests {
  let device: Device

  init() throws { device = try Device() }

  @Test("one call writes a `Codable` value, and one reads it; damage and another type throw typed errors")
  func files() throws {
    let url = device.folder.url.appendingPathComponent("settings.save")
    #expect(try Archive.read(Settings.self, from: url) == nil)
    let settings = Settings(volume: 0.25, last: Date(timeIntervalSinceReferenceDate: 7))
    try Archive.write(settings, to: url)
    #expect(try Archive.read(Settings.self, from: url) == settings)
    #expect {
      try Archive.read([String].self, from: url)
    } throws: { ($0 as? ArchiveError)?.code == .mismatch }
    #expect {
      try Archive.read([Date: Settings].self, from: url)
    } throws: { ($0 as? ArchiveError)?.code == .mismatch }
    var bytes = try Data(contentsOf: url)
    bytes[bytes.count / 2] ^= 4
    try bytes.write(to: url)
    #expect {
      try Archive.read(Settings.self, from: url)
    } throws: { ($0 as? ArchiveError)?.code == .damaged }
  }

  @Test("an archivable value that generic code writes as `Codable` can be read as archivable")
  func genericFiles() throws {
    func save<Value: Codable>(_ value: Value, _ url: URL) throws -> Value? {
      try Archive.write(value, to: url)
      return try Archive.read(Value.self, from: url)
    }
    let url = device.folder.url.appendingPathComponent("list.save")
    #expect(try save([1, 2, 3], url) == [1, 2, 3])
    #expect(try Archive.read([Int32].self, from: url) == [1, 2, 3])
    #expect(try save(Settings(), url) == Settings())
    #expect(try save(Int?.none, url) == .some(nil))
  }
}
