import KeepsakeArchive

struct HandKeyed: Archivable {
  var text: String
  var number: Int
  init(text: String, number: Int) { (self.text, self.number) = (text, number) }
  func encode(to writer: inout ArchiveWriter) throws {
    try writer.encode(number, forKey: "number")
    try writer.encode(text, forKey: "text")
    try writer.encode([1.5], forKey: "extra")
  }
  init(from reader: inout ArchiveReader) throws {
    text = try reader.decode(String.self, forKey: "text")
    number = try reader.decode(Int.self, forKey: "number")
  }
}
