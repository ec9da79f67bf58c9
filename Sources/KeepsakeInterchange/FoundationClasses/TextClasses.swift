import Foundation

extension FoundationClass {
  /// Texts are usually written as plain strings. This object form is for the text that represents nil.
  static let string = FoundationClass(
    names: ["NSString", "NSMutableString"],
    read: { object in
      if let text = object["NS.string"]?.string { return .string(text) }
      guard let bytes = object["NS.bytes"]?.data, let text = String(validating: bytes, as: UTF8.self) else {
        return nil
      }
      return .string(text)
    },
    write: { content, _ in if case .string(let text) = content { [.init("NS.string", .string(text))] } else { nil } })

  /// A text and, for each part of it with its own attributes, `location`, `length` and `attributes`; in UTF-16 units,
  /// as everywhere in Foundation.
  static let attributedString = FoundationClass(
    names: ["NSAttributedString", "NSMutableAttributedString"],
    read: { object in
      guard let text = try object.text(object["NSString"]) else { return nil }
      guard let given = object["NSAttributes"], let attributes = try object.part(given) else { return .string(text) }
      guard let runs = try runs(of: object, count: text.utf16.count, given, attributes) else { return nil }
      let fields: [PropertyList.Entry] = [.init("text", .string(text)), .init("runs", .array(runs))]
      return .forms(
        KeyedForms(
          summary: "the attributed text \"\(text.prefix(40))\(text.count > 40 ? "..." : "")\"", shown: .fields(fields),
          fields: fields,
          text: text))
    })

  /// Returns one run with the attributes for the whole text, or several runs with the length of the text that each
  /// applies to.
  private static func runs(
    of object: FoundationObject, count: Int, _ given: PropertyList, _ attributes: PropertyList
  ) throws -> [PropertyList]? {
    func run(_ location: Int, _ length: Int, _ attributes: PropertyList) -> PropertyList {
      ["location": .integer(Int128(location)), "length": .integer(Int128(length)), "attributes": attributes]
    }
    guard let all = attributes["NS.objects"]?.array, attributes["NS.keys"] == nil else { return [run(0, count, given)] }
    guard let info = try object.packedNumbers(object["NSAttributeInfo"]), info.count.isMultiple(of: 2) else {
      return nil
    }
    var runs: [PropertyList] = []
    var location = 0
    for place in stride(from: 0, to: info.count, by: 2) {
      let (length, index) = (info[place], info[place + 1])
      guard all.indices.contains(index), length > 0, length <= count - location else { return nil }
      runs.append(run(location, length, all[index]))
      location += length
    }
    return location == count ? runs : nil
  }
}
