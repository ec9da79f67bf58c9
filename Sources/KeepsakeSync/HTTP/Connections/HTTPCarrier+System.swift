#if !os(Linux)
extension HTTPCarrier: CaseIterable {
  static let allCases: [HTTPCarrier] = [.system]
  static let preferred = HTTPCarrier.system
}
#endif
